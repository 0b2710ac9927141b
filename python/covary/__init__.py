"""PCA, probabilistic PCA, Bayesian PCA, factor analysis and k-means for tables with missing values.

>>> import numpy as np
>>> import covary
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(500, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(500, 8))
>>> model = covary.PPCA(2).fit(X)
>>> model.transform(X).shape
(500, 2)
>>> bool(abs(model.noise_variance_ - 0.01) < 0.001)
True
"""

from covary._covary import __version__

# Type checkers take this for true; typing itself would be imported for this alone.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from covary import plot as plot
    from covary._public import *
else:

    def __getattr__(name):
        """Imports what is public, and NumPy and scikit-learn with it, when it is first asked for.

        The command ``covary`` is in this package too and needs none of them.
        """
        if name == "__all__" or not name.startswith("_"):
            if name == "plot":
                import covary.plot

                return covary.plot
            from covary import _public

            if name in ("__all__", *_public.__all__):
                return getattr(_public, name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), "plot", *__getattr__("__all__")})
