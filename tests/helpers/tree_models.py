"""Small tables with categories, missing values and zeros, and trees of LightGBM and XGBoost fitted to them."""

from __future__ import annotations

import numpy as np

from rocmax.boosted.trees import read_lightgbm, read_xgboost

ENGINES = ("lightgbm", "xgboost")


def table(seed, n=300, n_categories=70):
    """Three columns of numbers, one of category codes, and a target."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    X[:, 3] = rng.integers(0, n_categories, n)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[rng.random(X.shape) < 0.1] = 0
    y = np.nan_to_num(X[:, 0] * X[:, 1]) + np.sin(7 * np.nan_to_num(X[:, 3])) + 0.3 * rng.normal(size=n) > 0.2
    return X, y.astype(int)


def custom(scores, data):
    """Logistic loss as a callable objective."""
    p = 1 / (1 + np.exp(-scores))
    return p - data.get_label(), p * (1 - p)


def lightgbm_booster(X, y, rounds=5, categorical=(3,), **params):
    import lightgbm

    defaults = {
        "objective": "binary",
        "num_leaves": 6,
        "min_data_in_leaf": 2,
        "min_data_per_group": 2,
        "cat_smooth": 1,
        "max_bin": 30,
        "num_threads": 1,
        "verbose": -1,
    }
    params = defaults | params
    data = lightgbm.Dataset(X, y, categorical_feature=list(categorical), params={"verbose": -1})
    return lightgbm.train(params, data, rounds)


def xgboost_matrix(X, y=None, categorical=(3,)):
    import xgboost

    types = ["c" if place in categorical else "q" for place in range(X.shape[1])]
    return xgboost.DMatrix(X, y, feature_types=types, enable_categorical=True, nthread=1)


def xgboost_booster(X, y, rounds=5, categorical=(3,), objective="binary:logistic", **params):
    import xgboost

    defaults = {"max_leaves": 6, "max_depth": 0, "grow_policy": "lossguide", "max_cat_to_onehot": 3, "nthread": 1}
    params = defaults | params | ({} if callable(objective) else {"objective": objective})
    data = xgboost_matrix(X, y, categorical)
    return xgboost.train(params, data, rounds, obj=objective if callable(objective) else None)


def tree_text(engine, X, y, **params):
    """Text of a model that was just fitted."""
    if engine == "lightgbm":
        return lightgbm_booster(X, y, **params).model_to_string()
    return xgboost_booster(X, y, **params).save_raw("json").decode()


def read_trees(engine, text, n_features):
    """Model of the text that a library has written."""
    return {"lightgbm": read_lightgbm, "xgboost": read_xgboost}[engine](text, n_features)


def tree_model(engine, X, y, **params):
    """Model that was just fitted."""
    return read_trees(engine, tree_text(engine, X, y, **params), X.shape[1])


def engine_scores(engine, text, X, categorical=(3,)):
    """Raw scores of the library itself."""
    if engine == "lightgbm":
        import lightgbm

        return lightgbm.Booster(model_str=text).predict(X, raw_score=True, num_threads=1)
    import xgboost

    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(bytearray(text.encode()))
    return booster.predict(xgboost_matrix(X, None, categorical), output_margin=True)
