"""The pictures of docs/curved.md: what GP-LVMs find in a run, a robot's way, digits and faces.

Run from the folder of the project, with the package and matplotlib installed: python docs/examples/curved.py [FOLDER]
Digits are scikit-learn's. The others are looked for in the folder that COVARY_DATA names; a picture whose data are not there
is left as it is.
"""

import os
import pathlib
import sys
import warnings

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from plots import save
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import covary

DATA = pathlib.Path(os.environ.get("COVARY_DATA", "."))


def panels(widths, height=4.2):
    figure, axes = plt.subplots(1, len(widths), figsize=(sum(widths), height), width_ratios=widths, layout="constrained")
    return figure, axes


def positions(ax, z, color, title, **options):
    """Positions in a plane, coloured by class or time."""
    dots = ax.scatter(z[:, 0], z[:, 1], c=color, s=9, linewidths=0, **options)
    ax.set(xlabel="z1", ylabel="z2", title=title)
    return dots


def path(ax, z, time, title, **names):
    """Positions that follow each other, joined in order."""
    ax.plot(z[:, 0], z[:, 1], color="0.8", linewidth=0.7, zorder=0)
    ax.scatter(z[:, 0], z[:, 1], c=time, s=10, cmap="viridis")
    ax.set(**(dict(xlabel="z1", ylabel="z2", title=title) | names))


def generated(ax, model, image, side, title, cmap):
    """Images at places of a grid, two deviations of the prior to each side."""
    steps, (height, width) = np.linspace(-2, 2, side), image
    rows = model.inverse_transform([(right, up) for up in steps[::-1] for right in steps])
    images = np.pad(rows.reshape(side, side, height, width), ((0, 0), (0, 0), (0, 1), (0, 1)), constant_values=np.nan)
    sheet = images.transpose(0, 2, 1, 3).reshape(side * (height + 1), side * (width + 1))
    ax.imshow(sheet, cmap=cmap, aspect="auto", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[], xlabel="z1, from −2 to 2", ylabel="z2, from −2 to 2")


def mocap():
    """Frames of a run: markers that are never lost, around the mean of their frame."""
    table = pd.read_csv(DATA / "mocap_run1.csv").iloc[:, 2:].dropna(axis=1).to_numpy()
    frames = table.reshape(len(table), -1, 3)
    frames = frames - frames.mean(axis=1, keepdims=True)
    x = frames.reshape(len(frames), -1)
    model = covary.GPLVM(5).fit(x)
    z = model.latent_mean_
    figure, axes = plt.subplot_mosaic("ab\ncc", figsize=(8, 6), height_ratios=(3.6, 2), layout="constrained")
    left, middle, below = (axes[name] for name in "abc")
    path(left, covary.PPCA(2).fit_transform(x), np.arange(len(x)), "PPCA")
    path(middle, z, np.arange(len(x)), "GP-LVM: two of its dimensions")
    # Between frames: eight poses of one stride, at positions that no frame has.
    at = np.linspace(60.5, 150.5, 8)
    places = np.stack([np.interp(at, np.arange(len(z)), z[:, k]) for k in range(z.shape[1])], axis=1)
    middle.plot(places[:, 0], places[:, 1], "r.", markersize=9)
    for i, pose in enumerate(model.inverse_transform(places).reshape(len(at), -1, 3)):
        forward, up = pose[:, 0], pose[:, 2]
        below.scatter(forward + 1100 * i, up, s=9, color="tab:red")
    below.set(title="poses generated at the red places, in the order of time", aspect="equal", yticks=[], xticks=[])
    return figure


def robot():
    """Strengths of 30 access points along the way of a robot through a floor; −92 where one is not heard."""
    table = pd.read_csv(DATA / "robot_wireless.csv")
    x = (table.filter(like="ap").fillna(-92).to_numpy() + 85) / 15
    model = covary.GPLVM(2).fit(x)
    figure, axes = panels((3.6, 3.6, 3.6), 3.6)
    path(axes[0], table[["x", "y"]].to_numpy(), table["time"], "where the robot was", xlabel="x", ylabel="y")
    path(axes[1], covary.PPCA(2).fit_transform(x), table["time"], "PPCA")
    path(axes[2], model.latent_mean_, table["time"], "GP-LVM(2)")
    return figure


def digits():
    """Half of scikit-learn's digits on a surface of two dimensions."""
    x, labels = load_digits(return_X_y=True)
    x, labels = x[::2], labels[::2]
    model = covary.GPLVM(2).fit(x)
    figure, (left, middle, right) = panels((4.0, 4.6, 4.2))
    positions(left, covary.PPCA(2).fit_transform(x), labels, "PPCA", cmap="tab10")
    dots = positions(middle, model.latent_mean_, labels, "GP-LVM(2)", cmap="tab10", vmin=-0.5, vmax=9.5)
    figure.colorbar(dots, ax=middle, ticks=range(10))
    generated(right, model, (8, 8), 12, "digits generated along the plane", "gray_r")
    return figure


def faces():
    """Every third of 1965 frames of a film, 28 × 20 pixels."""
    x = pd.read_csv(DATA / "frey_faces.csv.gz").to_numpy(float)[::3]
    model = covary.GPLVM(2).fit(x)
    figure, (left, right) = panels((4.8, 3.9), 4.9)
    dots = positions(left, model.latent_mean_, 3 * np.arange(len(x)), "GP-LVM(2)", cmap="viridis")
    figure.colorbar(dots, ax=left, label="frame")
    generated(right, model, (28, 20), 9, "faces generated along the plane", "gray")
    return figure


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "docs/pictures")
    folder.mkdir(parents=True, exist_ok=True)
    for draw, needs in [(digits, None), (mocap, "mocap_run1.csv"), (robot, "robot_wireless.csv"), (faces, "frey_faces.csv.gz")]:
        if needs and not (DATA / needs).exists():
            print(f"{draw.__name__}: skipped, COVARY_DATA names no folder with {needs}")
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            figure = draw()
        save(figure, folder / f"curved_{draw.__name__}.png")
        plt.close(figure)
        print(f"curved_{draw.__name__}.png in {folder}")


if __name__ == "__main__":
    main()
