"""The interactive page: what is written is what the methods say."""

import base64
import gzip
import json
import re

import numpy as np
import pytest

import covary

KINDS = {"f64": np.float64, "f32": np.float32, "u32": np.uint32, "u8": np.uint8}


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    return rng.normal(size=(60, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(60, 5)) + 4.0


def unpacked(path):
    """What a page is told, and its arrays."""
    text = path.read_text(encoding="utf-8")
    block = gzip.decompress(base64.b64decode(re.search(r'id="data">([^<]*)<', text)[1]))
    length = int.from_bytes(block[:4], "little")
    whole = json.loads(block[4 : 4 + length])
    start = -(-(4 + length) // 8) * 8
    arrays = {
        entry["name"]: np.frombuffer(
            block, KINDS[entry["type"]], entry["shape"][0] * entry["shape"][1], start + entry["offset"]
        ).reshape(entry["shape"])
        for entry in whole["arrays"]
    }
    return whole["about"], arrays


@pytest.mark.parametrize(
    "estimator",
    [
        covary.PPCA(2),
        covary.PCA(2, whiten=True),
        covary.PPCA(2, scale="unit"),
        covary.FactorAnalysis(2, rotation="oblimin"),
        covary.BayesianPCA(),
        covary.RobustPPCA(2),
    ],
    ids=lambda e: type(e).__name__,
)
def test_the_explorer_decodes_as_inverse_transform(estimator, X, tmp_path):
    estimator.fit(X).report(X, tmp_path / "page.html")
    about, arrays = unpacked(tmp_path / "page.html")
    place = np.linspace(-1.5, 2.0, arrays["directions"].shape[1])
    shown = arrays["mean"][:, 0] + arrays["directions"] @ place
    np.testing.assert_allclose(shown, estimator.inverse_transform(place[None])[0], rtol=1e-10)
    assert 5 <= len(about["sentences"]) <= 10


@pytest.mark.parametrize("estimator", [covary.PPCA(2), covary.PCA(2), covary.RobustPPCA(2)], ids=lambda e: type(e).__name__)
def test_control_limits_are_those_of_the_model(estimator, X, tmp_path):
    X = X.copy()
    X[3, :2] = np.nan
    estimator.fit(X).report(X, tmp_path / "page.html")
    about, arrays = unpacked(tmp_path / "page.html")
    assert about["answers"]["limits"] == {"level": 0.99, "complete": True, "each": True}
    complete = estimator.limits(0.99)
    np.testing.assert_allclose(arrays["limits"][0], [complete["t2"], complete["spe"]], rtol=1e-14)
    each = estimator.limits(0.99, X)
    for name in ("t2", "spe"):
        np.testing.assert_allclose(arrays[f"{name}_limit"][:, 0], each[name], rtol=1e-7)


@pytest.mark.parametrize("estimator", [covary.KMeans(3), covary.MixturePPCA(2, 1), covary.KernelPCA(2, kernel="rbf")])
def test_models_of_other_forms_have_pages(estimator, X, tmp_path):
    estimator.fit(X).report(X, tmp_path / "page.html")
    about, arrays = unpacked(tmp_path / "page.html")
    assert about["linear"] is None and about["rows"]["shown"] == 60
    assert ("group" in arrays) == hasattr(estimator, "predict")


def test_columns_labels_and_shapes_come_along(X, tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abcde"), index=[f"r{i}" for i in range(60)])
    columns = pandas.DataFrame({"age": np.arange(60.0), "kind": ["x", None] * 30})
    model = covary.PPCA(2).fit(frame)
    model.report(frame, tmp_path / "page.html", columns=columns, image=(1, 5), title="<b>")
    about, arrays = unpacked(tmp_path / "page.html")
    assert [column["name"] for column in about["carried"]] == ["row", "age", "kind"]
    assert about["carried"][0]["labels"][7] == "r7" and about["id"] == 0
    assert arrays["carried1"][5, 0] == 5.0 and about["carried"][2]["labels"] == ["x", ""]
    assert about["features"] == list("abcde") and about["image"] == {"height": 1, "width": 5}
    assert about["title"] == "<b>"


def test_rows_are_limited_and_cells_come_back(X, tmp_path):
    model = covary.PPCA(2).fit(X)
    model.report(X, tmp_path / "page.html", rows=20, random_state=1)
    about, arrays = unpacked(tmp_path / "page.html")
    assert (about["rows"]["shown"], about["rows"]["total"], about["rows"]["sampled"]) == (20, 60, True)
    kept = arrays["numbers"][:, 0]
    steps = arrays["cells"].reshape(5, 2, 20).astype(float)
    base, times, divisor = arrays["steps"].T[:, :, None]
    shown = (base + (256 * steps[:, 0] + steps[:, 1]) * times) / divisor
    np.testing.assert_allclose(shown.T, X[kept], atol=np.ptp(X, axis=0).max() / 65534)
    model.report(X, tmp_path / "page.html", rows=0)
    assert unpacked(tmp_path / "page.html")[0]["rows"]["shown"] == 0


def test_what_makes_no_sense_is_refused(X, tmp_path):
    model = covary.PPCA(2).fit(X)
    with pytest.raises(ValueError, match="image"):
        model.report(X, tmp_path / "page.html", image=(8, 8))
    with pytest.raises(ValueError, match="image"):
        model.report(X, tmp_path / "page.html", image=8)
    with pytest.raises(ValueError, match="carried column"):
        model.report(X, tmp_path / "page.html", columns={"short": [1, 2]})
    with pytest.raises(TypeError, match="mapping"):
        model.report(X, tmp_path / "page.html", columns=[1, 2])
    with pytest.raises(ValueError, match="markers"):
        model.report(X, tmp_path / "page.html", stick=[("A", "B")])
    assert not (tmp_path / "page.html").exists()
