"""Which walls a host can put around a candidate, and what its operator can do about the missing
ones.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

REMEDIES = {
    "other_uid": "start the judge as root: only root can hand a candidate to another user",
    "network": "start the judge as root, or allow unprivileged user namespaces "
    "(sysctl user.max_user_namespaces); in a container add "
    "--cap-add SYS_ADMIN --security-opt seccomp=unconfined",
    "mount": "as for the network wall; in a container also --security-opt apparmor=unconfined",
    "ipc": "as for the network wall",
    "pid": "as for the network wall; in a container also --security-opt systempaths=unconfined",
    "cgroup": "mount cgroup v2 writable at /sys/fs/cgroup with the memory and pids controllers "
    "(systemd: Delegate=yes; container: --cgroupns=private and a writable /sys/fs/cgroup)",
    "rlimits": "start the judge as root: a limit on processes does not bind the judge's own user",
    "no_new_privs": "use a Linux kernel of 3.5 or later",
    "seccomp": "use a kernel with CONFIG_SECCOMP_FILTER on x86-64 or arm64",
}


@dataclass(frozen=True)
class Walls:
    """The walls that were tried and hold on this host, and the reason for each that does not.

    `user_namespace` says how: false means that the judge is root, true that it stands on an
    unprivileged user namespace, where a candidate keeps the judge's uid outside but sees only its
    own files and processes.
    """

    other_uid: bool = False
    network: bool = False
    mount: bool = False
    ipc: bool = False
    pid: bool = False
    cgroup: bool = False
    rlimits: bool = False
    no_new_privs: bool = False
    seccomp: bool = False
    user_namespace: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def minimum(self) -> bool:
        """Whether strangers' code may be judged: it can't act as the judge's user, has no network,
        and is limited.
        """
        own_user = self.other_uid or (self.user_namespace and self.mount and self.pid)
        return own_user and self.network and self.no_new_privs and (self.rlimits or self.cgroup)

    def missing(self) -> list[str]:
        """One line for each wall that is missing: which, why, and how to get it."""
        return [
            f"{name}: {self.reasons.get(name, 'not tried')}; to get it, {remedy}"
            for name, remedy in REMEDIES.items()
            if not getattr(self, name)
        ]

    def without(self, name: str, reason: str) -> "Walls":
        """The same walls with one left out on purpose, and why."""
        if name not in REMEDIES:
            raise ValueError(f"no wall is called {name!r}; there are {', '.join(REMEDIES)}")
        flags = {**self._flags(), name: False}
        return Walls(**flags, reasons={**self.reasons, name: reason})

    def having(self, name: str) -> "Walls":
        """The same walls and one more, which was tried and holds."""
        return Walls(**{**self._flags(), name: True}, reasons=self.reasons)

    def to_json(self) -> dict[str, object]:
        """The walls as a run's environment records them."""
        return {**self._flags(), "minimum": self.minimum, "reasons": dict(self.reasons)}

    def _flags(self) -> dict[str, bool]:
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "reasons"}
