"""How Celery's workers read from the broker: its own way, without what we don't use."""

from celery.worker import consumer


class Consumer(consumer.Consumer):
    """Declares no exchanges and queues for messages with an ETA, 28 each on RabbitMQ: we send none.
    (A job that must wait does so as a row.)
    """

    class Blueprint(consumer.Consumer.Blueprint):
        default_steps = [
            step
            for step in consumer.Consumer.Blueprint.default_steps
            if not str(step).endswith(":DelayedDelivery")
        ]
