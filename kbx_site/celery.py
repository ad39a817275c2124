"""The Celery app: three kinds of queue, JSON only, and nothing of Django.

A host with boards needs the broker's address and nothing else, so the configuration is read from
the environment here and not from Django's settings: `gpu.<slug>` carries jobs to the boards of one
GPU product, `builds` sources to compilers that need no board, and `site` carries what was found
back to the database.
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from celery import Celery
from celery.signals import setup_logging, worker_process_init

from kbx_site import env
from kbx_site.logs import configure

BASE_DIR = Path(__file__).resolve().parents[1]
SITE_QUEUE = "site"
BUILDS_QUEUE = "builds"
EMBEDDED_BROKER = "filesystem://localhost//"
# A job's own limits are the judge's (minutes). This is the last resort against a judge that hangs.
HARD_LIMIT_SECONDS = 1800
# Redis hands a message out again when it was not acknowledged in this time: must exceed the limit.
VISIBILITY_SECONDS = HARD_LIMIT_SECONDS + 600
SWEEP_SECONDS = 10
LOADED_BY = os.getpid()  # of a worker with a pool: the worker, in each of the pool's processes
SCHEMES = ("filesystem", "redis", "rediss", "amqp", "amqps")


def transport(scheme: str, state: Path) -> dict[str, Any]:
    """What a broker of this kind needs to lose nothing and to be quick."""
    if scheme == "filesystem":
        folders = {name: state / "broker" / name for name in ("queue", "taken", "control")}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        return {
            "broker_transport": "kbx_site.filesystem:Transport",
            "broker_transport_options": {
                "data_folder_in": str(folders["queue"]),
                "data_folder_out": str(folders["queue"]),
                "processed_folder": str(folders["taken"]),
                "control_folder": str(folders["control"]),
                # Kept out of the system's temporary folder, and removed once read.
                "store_processed": False,
            },
        }
    if scheme.startswith("redis"):
        return {
            "broker_transport_options": {
                "visibility_timeout": VISIBILITY_SECONDS,
                # Every 2 s: with the defaults a dead worker's job came back after 95 s.
                "unacked_restore_interval": 2,
                "socket_keepalive": True,
            }
        }
    return {"broker_transport_options": {"confirm_publish": True}}


def tells_events(scheme: str) -> bool:
    """Whether workers tell the broker what they do, for Flower and the like: where a site asks."""
    return scheme != "filesystem" and env.flag("KBX_TASK_EVENTS", False)


def configuration(broker: str, state: Path) -> dict[str, Any]:
    scheme = urlsplit(broker).scheme
    if scheme not in SCHEMES:
        raise env.Misconfigured(
            f"KBX_BROKER_URL={scheme}://... is no broker we know: use one of {', '.join(SCHEMES)}"
        )
    return {
        "broker_url": broker,
        "broker_connection_retry_on_startup": True,
        **transport(scheme, state),
        "task_default_queue": SITE_QUEUE,
        "task_create_missing_queues": True,
        # A quorum queue survives the loss of a RabbitMQ node, and of the worker that read from it.
        "task_create_missing_queue_type": "quorum" if scheme.startswith("amqp") else "classic",
        "task_create_missing_queue_exchange_type": "direct",
        # Jobs name their GPU's queue when they are sent; everything else is the site's.
        "task_routes": {"runner.record_*": {"queue": SITE_QUEUE}},
        "task_serializer": "json",
        "accept_content": ["json"],
        "result_serializer": "json",
        "event_serializer": "json",
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_track_started": False,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_time_limit": HARD_LIMIT_SECONDS,
        "worker_prefetch_multiplier": 1,
        "worker_consumer": "kbx_site.consuming:Consumer",
        # Events and remote control would fill the filesystem broker with messages nobody reads.
        "worker_enable_remote_control": scheme != "filesystem",
        "worker_send_task_events": tells_events(scheme),
        "task_send_sent_event": tells_events(scheme),
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "enable_utc": True,
        "timezone": "UTC",
        "beat_schedule_filename": str(state / "beat"),
        "beat_schedule": {
            "sweep": {
                "task": "runner.sweep",
                "schedule": env.integer("KBX_SWEEP_SECONDS", SWEEP_SECONDS),
                # A sweep that waited is superseded by the next one.
                "options": {"queue": SITE_QUEUE, "expires": 60},
            }
        },
    }


def state_dir() -> Path:
    return Path(env.text("KBX_STATE_DIR", str(BASE_DIR / "var")))


app = Celery("kbx", include=["runner.tasks"], set_as_current=True)
app.conf.update(configuration(env.text("KBX_BROKER_URL", EMBEDDED_BROKER), state_dir()))


@setup_logging.connect
def set_up_logging(**_: Any) -> None:
    """Log like the site does, instead of Celery's own way."""
    configure()


@worker_process_init.connect
def die_with_the_worker(**_: Any) -> None:
    """A pool process whose worker was killed must not go on: it would use the board beside its
    successor.
    """
    from runner.processes import die_with_parent

    if os.getpid() != LOADED_BY:  # a worker without a pool says this of itself
        die_with_parent(LOADED_BY)
