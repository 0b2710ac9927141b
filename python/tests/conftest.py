"""Marks those of scikit-learn's tests that ours is right not to pass; one that passes after all is a failure."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        reason_to_differ = getattr(item.module, "reason_to_differ", None) if hasattr(item, "module") else None
        why = reason_to_differ(item.name) if reason_to_differ else None
        if why is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))
