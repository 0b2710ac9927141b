"""Warnings that point at the line of whoever called the library."""

import os
import sys
import warnings

import sklearn

_OURS = tuple(os.path.dirname(path) + os.sep for path in (__file__, sklearn.__file__))


def warn(message, category=UserWarning):
    """Warns of something at the innermost line that is neither ours nor scikit-learn's."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
