"""The summary under a fitted estimator in a notebook."""

from html import escape

_SHOWN = 8


def summary(estimator):
    """A table of what a fit has found."""
    report = estimator.report_
    shares = [f"{share:.1%}" for share in estimator.explained_variance_ratio_[:_SHOWN]]
    if estimator.n_components_ > _SHOWN:
        shares.append("…")
    pairs = {
        "rows": report["rows"],
        "features": estimator.n_features_in_,
        "components": estimator.n_components_,
        "share of the variance": " ".join(shares),
        "noise variance": _number(estimator.noise_variance_),
        "log-likelihood": _number(estimator.log_likelihood_),
        **estimator._summary(),
        "solver": f"{report['solver']}: {report['why']}",
        "converged": "yes" if estimator.converged_ else f"no ({report['stop']})",
    }
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(str(value))}</td></tr>'
        for name, value in pairs.items()
    )
    return f'<table class="covary-summary">{cells}</table>'


def _number(value):
    return f"{value:.6g}" if isinstance(value, float) else f"{value.min():.6g} to {value.max():.6g}"
