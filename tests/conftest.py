"""What all tests share: one hypothesis profile, the same everywhere, so that a failure can be
repeated, and stores of both kinds."""

from hypothesis import HealthCheck, settings

from support.stores import agreement, place, postgresql

__all__ = ["agreement", "place", "postgresql"]

settings.register_profile(
    "blurfit",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("blurfit")
