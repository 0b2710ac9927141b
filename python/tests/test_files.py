"""Files: rows that are read in parts, models that the command reads and writes, pickles."""

import copy
import pathlib
import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from support import low_rank

import covary


@pytest.fixture(scope="module")
def X():
    return low_rank(500, 7, 3)


def csv(path, X, names="abcdefg"):
    np.savetxt(path, X, delimiter=",", header=",".join(names), comments="", fmt="%.17g")
    return path


@pytest.mark.parametrize("kind", ["ppca", "pca"])
def test_python_and_the_command_write_the_same_bytes(X, tmp_path, command, kind):
    np.save(tmp_path / "x.npy", X)
    command("fit", tmp_path / "x.npy", "-q", 3, "--model", kind, "-o", tmp_path / "command.covary", "--quiet")
    estimator = covary.PPCA(3) if kind == "ppca" else covary.PCA(3)
    for rows in (X, covary.read(tmp_path / "x.npy")):
        estimator.fit(rows).save(tmp_path / "python.covary")
        assert (tmp_path / "python.covary").read_bytes() == (tmp_path / "command.covary").read_bytes()
    loaded = covary.load(tmp_path / "command.covary")
    assert type(loaded) is type(estimator)
    np.testing.assert_array_equal(loaded.transform(X), estimator.transform(X))
    np.testing.assert_array_equal(loaded.explained_variance_, estimator.explained_variance_)


def test_a_model_saved_by_python_serves_the_command(X, tmp_path, command):
    import pandas as pd

    data = csv(tmp_path / "x.csv", X)
    model = covary.PPCA(2).fit(pd.DataFrame(X, columns=list("abcdefg")))
    model.save(tmp_path / "m.covary")
    out = command("transform", tmp_path / "m.covary", data)
    table = np.genfromtxt(out.splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(table, model.transform(X))
    scores = command("score", tmp_path / "m.covary", data).splitlines()
    column = scores[0].split(",").index("log_density")
    table = np.genfromtxt(scores, delimiter=",", skip_header=1)[:, column]
    np.testing.assert_array_equal(table, model.score_samples(X))


def test_factors_and_the_command(X, tmp_path, command):
    data = csv(tmp_path / "x.csv", X)
    model = covary.FactorAnalysis(2, rotation="oblimin").fit(covary.read(data))
    model.save(tmp_path / "python.covary")
    out = command("transform", tmp_path / "python.covary", data)
    table = np.genfromtxt(out.splitlines(), delimiter=",", skip_header=1)
    np.testing.assert_array_equal(table, model.transform(X))
    if "--rotate" not in command("fit", "--help"):
        pytest.skip("this command does not fit factors")
    given = ["fit", data, "--model", "fa", "-q", 2, "--rotate", "oblimin", "-o", tmp_path / "command.covary", "--quiet"]
    command(*given)
    assert (tmp_path / "python.covary").read_bytes() == (tmp_path / "command.covary").read_bytes()
    np.testing.assert_array_equal(covary.load(tmp_path / "command.covary").loadings_, model.loadings_)


@pytest.mark.parametrize("memory", [None, 16 << 20])
def test_files_in_memory_and_in_parts(tmp_path, memory):
    X = low_rank(200_000, 6, 2)
    np.save(tmp_path / "x.npy", X)
    rows = covary.read(tmp_path / "x.npy", memory=memory)
    assert rows.n_rows == len(X)
    ours, array = covary.PPCA(2).fit(rows), covary.PPCA(2).fit(X)
    np.testing.assert_allclose(ours.get_covariance(), array.get_covariance(), rtol=1e-11)
    np.testing.assert_allclose(ours.score_samples(rows), array.score_samples(X), rtol=1e-9)
    if memory:
        assert "one pass" in ours.report_["why"]
        with pytest.raises(ValueError, match="it needs all rows in memory"):
            covary.PPCA(2, solver="svd").fit(rows)


def test_columns_of_a_file(X, tmp_path):
    path = csv(tmp_path / "x.csv", X)
    some = covary.read(path, columns=["c", "a"])
    assert some.feature_names == ["c", "a"] and "500 rows, 2 features" in repr(some)
    np.testing.assert_allclose(covary.PPCA(1).fit(some).mean_, X.mean(axis=0)[[2, 0]])
    assert covary.read(path, drop=["b"]).feature_names == list("acdefg")
    weighted = covary.PPCA(2).fit(covary.read(csv(tmp_path / "w.csv", np.abs(X)), weights="g"))
    expected = covary.PPCA(2).fit(np.abs(X[:, :6]), sample_weight=np.abs(X[:, 6]))
    np.testing.assert_allclose(weighted.get_covariance(), expected.get_covariance(), rtol=1e-11)
    # A model finds its features by name, wherever they stand.
    model = covary.PPCA(1).fit(some)
    np.testing.assert_allclose(model.transform(covary.read(path)), model.transform(X[:, [2, 0]]), atol=1e-12)


def test_compressed_files_pass_once(X, tmp_path):
    import gzip

    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(csv(tmp_path / "x.csv", X).read_bytes()))
    ours = covary.PPCA(2).fit(covary.read(path))
    np.testing.assert_allclose(ours.get_covariance(), covary.PPCA(2).fit(X).get_covariance(), rtol=1e-11)


def test_trouble_with_files_has_pythons_names(X, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        covary.load(tmp_path / "nothing.covary")
    with pytest.raises(FileNotFoundError):
        covary.read(tmp_path / "nothing.csv")
    with pytest.raises(IsADirectoryError):
        (tmp_path / "x.csv").mkdir()
        covary.read(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="tells no format"):
        covary.read(tmp_path / "x.docx")
    (tmp_path / "bad.covary").write_bytes(b"not a model")
    with pytest.raises(ValueError, match="not a usable covary file"):
        covary.load(tmp_path / "bad.covary")
    (tmp_path / "text.csv").write_text("a,b\n1,2\n3,four\n5,6\n")
    with pytest.raises((ValueError, OSError)):
        covary.PPCA(2).fit(covary.read(tmp_path / "text.csv", columns=["a", "b"]))
    (tmp_path / "late.csv").write_text("a,b\n" + "1,2\n" * 5000 + "3,four\n")
    with pytest.raises(ValueError, match=r"row 5001 .*'four' is not a number; .* na=\[\"four\"\] .* with drop=\['b'\]"):
        covary.PPCA(2).fit(covary.read(tmp_path / "late.csv"))
    with pytest.raises(OSError):
        covary.PPCA(2).fit(X).save(tmp_path / "no such folder" / "m.covary")


@pytest.mark.parametrize("make", [covary.PPCA, covary.PCA])
def test_pickle_copy_and_clone(X, make):
    fitted = make(2).fit(X)
    parts = make(2).partial_fit(X[:200])
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(again.components_, fitted.components_)
        np.testing.assert_array_equal(again.transform(X), fitted.transform(X))
        assert again.report_ == fitted.report_
    more = pickle.loads(pickle.dumps(parts)).partial_fit(X[200:])
    np.testing.assert_allclose(more.get_covariance(), make(2).fit(X).get_covariance(), rtol=1e-11)
    assert clone(fitted).get_params() == fitted.get_params() and not hasattr(clone(fitted), "mean_")


def test_whitening_outlives_the_file(X, tmp_path, command):
    model = covary.PCA(3, whiten=True).fit(X)
    model.save(tmp_path / "white.covary")
    loaded = covary.load(tmp_path / "white.covary")
    assert loaded.whiten is True
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    np.testing.assert_allclose(loaded.transform(X).std(axis=0, ddof=1), 1.0)
    Z = model.transform(X)
    np.testing.assert_array_equal(loaded.inverse_transform(Z), model.inverse_transform(Z))
    plain = covary.PCA(3).fit(X)
    plain.save(tmp_path / "plain.covary")
    assert covary.load(tmp_path / "plain.covary").whiten is False
    # The command reads both, as coordinates in the units of the data.
    np.save(tmp_path / "x.npy", X)
    white, straight = (command("transform", tmp_path / f"{name}.covary", tmp_path / "x.npy") for name in ("white", "plain"))
    assert white == straight
    assert b'"whiten":true' in (tmp_path / "white.covary").read_bytes().replace(b"\\", b"")
    assert b"whiten" not in (tmp_path / "plain.covary").read_bytes()


def test_a_first_line_of_numbers_is_guessed_with_a_warning(tmp_path):
    path = tmp_path / "wavelengths.csv"
    rng = np.random.default_rng(0)
    rows = "\n".join(",".join(f"{x:.3f}" for x in row) for row in rng.normal(size=(20, 4)))
    path.write_text(f"400,410,420,430\n{rows}\n")
    with pytest.warns(UserWarning, match="first line is taken as the header"):
        assert covary.read(path).feature_names == ["400", "410", "420", "430"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert covary.read(path, header=True).n_rows == 20
        assert covary.read(path, header=False).n_rows == 21


def test_an_open_file_pickles(X, tmp_path, monkeypatch):
    path = csv(tmp_path / "x.csv", X)
    monkeypatch.chdir(tmp_path)
    rows = covary.read("x.csv", columns=["c", "a", "b"], memory=50_000_000)
    expected = covary.PPCA(2).fit(rows).loadings_
    monkeypatch.chdir("/")  # another process works in another folder
    for again in (pickle.loads(pickle.dumps(rows)), copy.deepcopy(rows)):
        assert again.feature_names == ["c", "a", "b"] and again.path == path and again.n_rows == len(X)
        np.testing.assert_array_equal(covary.PPCA(2).fit(again).loadings_, expected)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="x.csv"):
        pickle.loads(pickle.dumps(rows))


def test_a_guess_about_the_header_is_told_once(tmp_path):
    path = tmp_path / "years.csv"
    path.write_text("1990,1991,1992\n" + "".join(f"{i}.5,{i * i % 7}.25,{i % 3}.75\n" for i in range(20)))
    with pytest.warns(UserWarning, match="header=True or header=False"):
        rows = covary.read(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pickle.loads(pickle.dumps(rows)).feature_names == rows.feature_names


def test_text_as_people_have_it(tmp_path):
    path = tmp_path / "european.csv"
    X = np.round(low_rank(30, 2, 1), 3)
    X[1, 0], X[2, 1] = np.nan, np.nan
    cell = lambda x, word: word if np.isnan(x) else f"{x:.3f}".replace(".", ",")
    lines = ["größe;b;name", *(f"{cell(a, '?')};{cell(b, '-999')};x" for a, b in X)]
    path.write_bytes("\n".join(lines).encode("latin-1"))
    told = dict(delimiter=";", decimal=",", na=["?", -999], encoding="latin-1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = covary.read(path, **told)
    assert rows.feature_names == ["größe", "b"] and rows.not_numeric == ["name"] and "not numeric: name" in repr(rows)
    np.testing.assert_allclose(covary.PPCA(1).fit(rows).mean_, covary.PPCA(1).fit(X).mean_, rtol=1e-12)
    with pytest.warns(UserWarning) as caught:
        assert covary.read(path, na="?").n_rows == 30
    said = " ".join(str(warning.message) for warning in caught)
    for words in ("separated by ';'; delimiter=", "decimal mark is ','; decimal='.'", "windows-1252; encoding="):
        assert words in said
    assert "--" not in said
    for wrong, words in [
        (dict(delimiter="tab"), r"a tab does not occur .* say delimiter=\";\""),
        (dict(delimiter=",", decimal=","), "say what separates the cells with delimiter="),
        (dict(delimiter=";;"), "';;' cannot separate cells"),
        (dict(decimal=";"), "no decimal mark"),
        (dict(encoding="latin-99"), "no encoding"),
        (dict(sheet=2), "a sheet has no meaning"),
    ]:
        with pytest.raises(ValueError, match=words):
            covary.read(path, **wrong)
    with pytest.raises(ValueError, match=r"'\?' is not a number; correct it, say na=\[\"\?\"\]"):
        covary.PPCA(1).fit(covary.read(path, delimiter=";", decimal=",", encoding="latin-1"))


def test_spreadsheets(tmp_path):
    tables = pathlib.Path(__file__).parents[2] / "crates" / "io" / "tests" / "tables"
    rows = covary.read(tables / "sheet-second.xlsx", sheet="Data")
    assert rows.feature_names == ["height", "weight", "count"] and rows.n_rows == 8
    assert covary.read(tables / "sheet-second.xlsx", sheet=2).feature_names == rows.feature_names
    with pytest.raises(ValueError, match="no sheet 'Date'.*sheet=... takes a name or a number"):
        covary.read(tables / "sheet-second.xlsx", sheet="Date")
    with pytest.raises(ValueError, match="protected by a password"):
        covary.read(tables / "sheet-password.xlsx")
