"""Estimators and fitted models as stages of pyspark.ml: parameters, copies, persistence, and questions as columns."""

import inspect

from pyspark.ml import Estimator, Model
from pyspark.ml.param import Param, Params
from pyspark.ml.util import MLReadable, MLWritable

import covary
from covary import elsewhere
from covary.spark._frames import frame_of
from covary.spark._passes import Passes
from covary.spark._persistence import Reader, Writer
from covary.spark._questions import Questions

_OWN = {
    "features": "columns of numbers, or the name of one column of ML vectors or arrays; null and NaN are missing",
    "weights": "column that says how often each row counts",
    "long": "columns (row, feature, value) of a DataFrame that has one row for each cell",
    "cache": "whether rows are cached from the second pass on",
}


class _Stage(Params, MLWritable, MLReadable):
    """What estimators and fitted models share: columns, copies and files."""

    def write(self):
        """A writer, as pyspark.ml expects one."""
        return Writer(self)

    @classmethod
    def read(cls):
        """A reader, as pyspark.ml expects one."""
        return Reader(cls)

    def _value(self, name):
        """The value of a parameter; None where it is not set."""
        param = self.getParam(name)
        return self.getOrDefault(param) if self.isDefined(param) else None


def _parameters(cls):
    """Parameters of pyspark.ml for those of an estimator of covary, and for columns."""
    given = inspect.signature(cls._local.__init__).parameters
    names = [name for name in given if name not in ("self", "copy")]
    for name in names:
        setattr(cls, name, Param(Params._dummy(), name, f"{name} of covary.{cls._local.__name__}"))
    for name, doc in _OWN.items():
        setattr(cls, name, Param(Params._dummy(), name, doc))
    cls._defaults = {name: given[name].default for name in names if given[name].default is not inspect.Parameter.empty}
    cls._arguments = names
    return cls


class _Estimator(Estimator, _Stage):
    """An estimator of covary whose rows are a DataFrame."""

    _local = None
    _draws_rows = False  # whether it draws some of the rows, and so must know how many there are

    def __init__(self, *args, **given):
        super().__init__()
        given = {**dict(zip(self._arguments, args, strict=False)), **given}
        if len(args) > len(self._arguments):
            raise TypeError(f"{type(self).__name__} takes at most {len(self._arguments)} arguments by position")
        self._setDefault(**self._defaults, features=None, weights=None, long=None, cache=True)
        self.setParams(**given)

    def setParams(self, **given):
        """Set parameters by name.

        Returns
        -------
        self
        """
        for name, value in given.items():
            if not self.hasParam(name):
                raise TypeError(f"{type(self).__name__} has no parameter '{name}'")
            self.set(self.getParam(name), value)
        return self

    def fit(self, dataset, params=None, *, features=None, weights=None, long=None, cache=None):
        """Fit the model.

        Parameters
        ----------
        dataset : DataFrame
        params : dict or list of dicts, optional
            Parameters of pyspark.ml that are others for this fit.
        features : list of str or str, optional
            Columns of numbers, or one column of ML vectors or arrays; all numeric columns when not given. Null
            and NaN are missing values.
        weights : str, optional
            Column that says how often each row counts.
        long : (str, str, str), optional
            Columns (row, feature, value) of long format, in place of `features`: one row of the DataFrame for each
            cell that was seen, such as (user, item, rating).
        cache : bool, default True
            Whether rows are cached once a second pass shows that the fit takes several.

        Returns
        -------
        FittedModel
        """
        own = {"features": features, "weights": weights, "long": long, "cache": cache}
        own = {name: value for name, value in own.items() if value is not None}
        estimator = self.copy({self.getParam(name): value for name, value in own.items()}) if own else self
        return Estimator.fit(estimator, dataset, params)

    def _fit(self, dataset):
        local = self._local(**{name: self.getOrDefault(name) for name in self._arguments if self.isDefined(name)})
        frame = frame_of(dataset, self._value("features"), self._value("weights"), self._value("long"))
        verbose = type(self).__name__ if self._value("verbose") else None
        passes = Passes(frame, bool(self._value("cache")), verbose)
        try:
            if self._draws_rows:
                passes.count()
            model = local._best_model(None, passes, passes.fit)
        finally:
            passes.close()
        fitted = self._copyValues(FittedModel(elsewhere.fitted(local, model, passes.names)))
        fitted.passes_ = {"seconds": passes.seconds, "bytes": passes.traffic}
        return fitted


class FittedModel(Questions, Model, _Stage):
    """A model that was fitted on a cluster, and is the same as on one machine.

    Attributes
    ----------
    model : estimator of covary
        The fitted estimator, with all numbers (`model.loadings_`), questions and `model.save(path)`.
    passes_ : dict
        Seconds of each pass of the fit, and bytes of evidence that came to the driver; None after loading.
    """

    def __init__(self, model=None):
        super().__init__()
        self.model = model
        self.passes_ = None
        self._setDefault(features=None, outputCol="z")

    features = Param(Params._dummy(), "features", _OWN["features"])
    outputCol = Param(Params._dummy(), "outputCol", "column that transform adds")


def _named(local, draws_rows=False):
    """The class for Spark of an estimator of covary."""
    name = local.__name__
    doc = (
        f"covary's {name} on a Spark DataFrame.\n\n"
        f"    Parameters are those of :class:`covary.{name}`, by keyword, and `features`, `weights`, `long` and `cache`\n"
        "    as for `fit`. All are parameters of pyspark.ml.\n    "
    )
    namespace = {"_local": local, "_draws_rows": draws_rows, "__doc__": doc, "__module__": "covary.spark._estimators"}
    return _parameters(type(name, (_Estimator,), namespace))


PPCA = _named(covary.PPCA)
PCA = _named(covary.PCA)
FactorAnalysis = _named(covary.FactorAnalysis)
BayesianPCA = _named(covary.BayesianPCA)
RobustPPCA = _named(covary.RobustPPCA)
KMeans = _named(covary.KMeans, draws_rows=True)
MixturePPCA = _named(covary.MixturePPCA, draws_rows=True)
ICA = _named(covary.ICA, draws_rows=True)
KernelPCA = _named(covary.KernelPCA, draws_rows=True)
