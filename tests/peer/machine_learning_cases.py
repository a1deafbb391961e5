"""Operators of the domain ai.onnx.ml."""
import numpy as np

ML = "ai.onnx.ml"


def add(s):
    r = np.random.default_rng(11)

    def f32(*dims):
        return r.standard_normal(dims).astype(np.float32)

    def every_type(name, op, x, outputs=("f32",), **attributes):
        for kind in (np.float32, np.float64, np.int64, np.int32):
            s.add(f"{name}_{np.dtype(kind).name}", op, [x.astype(kind)], outputs, ML, **attributes)

    x = (f32(5, 3) * 4).round()
    words = np.array([["cat", "dog"], ["cow", "cat"]])
    small(s, f32, x, words, every_type)
    linear(s, f32, x, every_type)
    machines(s, f32, r, every_type)
    trees(s, f32, r)


def small(s, f32, x, words, every_type):
    s.add("array_feature_extractor", "ArrayFeatureExtractor", [x, np.array([2, 0], np.int64)], domain=ML)
    s.add("binarizer", "Binarizer", [x], domain=ML, threshold=0.5)
    s.add("category_mapper", "CategoryMapper", [words], ("i64",), ML, cats_strings=["dog", "cat"], cats_int64s=[7, 9], default_int64=-3)
    s.add("category_mapper_back", "CategoryMapper", [np.array([9, 8, 7], np.int64)], ("str",), ML, cats_strings=["dog", "cat"],
          cats_int64s=[7, 9], default_string="none")
    s.add("label_encoder_1", "LabelEncoder", [words], ("i64",), ML, ml=1, classes_strings=["dog", "cat"], default_int64=-3)
    s.add("label_encoder_1_back", "LabelEncoder", [np.array([1, 5, 0], np.int64)], ("str",), ML, ml=1, classes_strings=["dog", "cat"],
          default_string="none")
    s.add("label_encoder_2", "LabelEncoder", [words], ("f32",), ML, ml=2, keys_strings=["dog", "cat"], values_floats=[1.5, 2.5], default_float=-1.0)
    s.add("feature_vectorizer", "FeatureVectorizer", [f32(2, 3), f32(2, 1)], domain=ML, inputdimensions=[3, 1])
    s.add("feature_vectorizer_cut", "FeatureVectorizer", [f32(2, 3), f32(2, 1)], domain=ML, inputdimensions=[2, 3])
    s.add("feature_vectorizer_ints", "FeatureVectorizer", [np.array([1, 2], np.int64), np.array([3], np.int64)], domain=ML, inputdimensions=[2, 1])
    s.add("imputer", "Imputer", [np.array([[1, 0, 2], [0, 3, 0]], np.float32)], domain=ML, imputed_value_floats=[7.0, 8.0, 9.0],
          replaced_value_float=0.0)
    s.add("imputer_nan", "Imputer", [np.array([[1, np.nan, 2]], np.float32)], domain=ML, imputed_value_floats=[7.0],
          replaced_value_float=float("nan"))
    s.add("imputer_ints", "Imputer", [np.array([[1, -1, 2]], np.int64)], ("i64",), ML, imputed_value_int64s=[7], replaced_value_int64=-1)
    every_type("scaler", "Scaler", x, offset=[1.0, 2.0, 3.0], scale=[2.0, 0.5, 4.0])
    s.add("scaler_one", "Scaler", [x], domain=ML, offset=[1.0], scale=[2.0])
    for norm in ("MAX", "L1", "L2"):
        every_type(f"normalizer_{norm}", "Normalizer", np.vstack([x, 0 * x[:1]]), norm=norm)
    for kind in (np.float32, np.float64, np.int64):
        s.add(f"one_hot_{np.dtype(kind).name}", "OneHotEncoder", [np.array([3, 1, 7]).astype(kind)], domain=ML, cats_int64s=[1, 3, 5])
    s.add("one_hot_text", "OneHotEncoder", [words], domain=ML, cats_strings=["cat", "dog"])


TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def linear(s, f32, x, every_type):
    c = [float(v) for v in f32(9)]
    s.add("linear_regressor", "LinearRegressor", [x], domain=ML, coefficients=c[:6], intercepts=[0.5, -1.0], targets=2)
    s.add("linear_regressor_bare", "LinearRegressor", [x], domain=ML, coefficients=c[:3])
    every_type("linear_classifier", "LinearClassifier", x, ("i64", "f32"), coefficients=c, intercepts=[0.1, 0.2, 0.3], classlabels_ints=[5, 6, 7])
    for t in TRANSFORMS:
        s.add(f"linear_classifier_{t}", "LinearClassifier", [x], ("str", "f32"), ML, coefficients=c, intercepts=[0.1, 0.2, 0.3],
              classlabels_strings=["a", "b", "c"], post_transform=t, multi_class=1)
        s.add(f"linear_classifier_two_{t}", "LinearClassifier", [x], ("i64", "f32"), ML, coefficients=c[:3], intercepts=[0.1],
              classlabels_ints=[4, 8], post_transform=t)


def machines(s, f32, r, every_type):
    x, vectors = f32(4, 3), f32(6, 3)
    flat = [float(v) for v in vectors.ravel()]
    kernels = (("LINEAR", [0.0, 0.0, 0.0]), ("POLY", [0.5, 1.0, 2.0]), ("RBF", [0.3, 0.0, 0.0]), ("SIGMOID", [0.4, 0.2, 0.0]))
    for kind, parameters in kernels:
        s.add(f"svm_regressor_{kind}", "SVMRegressor", [x], domain=ML, coefficients=[float(v) for v in f32(6)], support_vectors=flat,
              rho=[0.3], n_supports=6, kernel_type=kind, kernel_params=parameters)
        s.add(f"svm_classifier_{kind}", "SVMClassifier", [x], ("i64", "f32"), ML, coefficients=[float(v) for v in f32(12)],
              support_vectors=flat, rho=[0.3, -0.2, 0.1], vectors_per_class=[2, 3, 1], classlabels_ints=[3, 1, 2], kernel_type=kind,
              kernel_params=parameters)
    s.add("svm_regressor_one_class", "SVMRegressor", [x], domain=ML, coefficients=[float(v) for v in f32(6)], support_vectors=flat, rho=[0.3],
          n_supports=6, kernel_type="RBF", kernel_params=[0.3, 0.0, 0.0], one_class=1)
    s.add("svm_regressor_weights", "SVMRegressor", [x], domain=ML, coefficients=[0.5, -1.0, 2.0], rho=[0.3], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])
    s.add("svm_classifier_probabilities", "SVMClassifier", [x], ("str", "f32"), ML, coefficients=[float(v) for v in f32(12)],
          support_vectors=flat, rho=[0.3, -0.2, 0.1], vectors_per_class=[2, 3, 1], classlabels_strings=["x", "y", "z"],
          kernel_type="RBF", kernel_params=[0.3, 0.0, 0.0], prob_a=[-1.0, -2.0, -0.5], prob_b=[0.1, 0.2, -0.3])
    for t in TRANSFORMS:
        s.add(f"svm_classifier_two_{t}", "SVMClassifier", [x], ("i64", "f32"), ML, coefficients=[float(v) for v in f32(6)],
              support_vectors=flat, rho=[0.3], vectors_per_class=[2, 4], classlabels_ints=[0, 1], kernel_type="RBF",
              kernel_params=[0.3, 0.0, 0.0], post_transform=t)
    s.add("svm_classifier_weights", "SVMClassifier", [x], ("i64", "f32"), ML, coefficients=[float(v) for v in f32(9)], rho=[0.3],
          classlabels_ints=[3, 1, 2], kernel_type="LINEAR", kernel_params=[0.0, 0.0, 0.0])


def trees(s, f32, r):
    # Two trees of depth two; a leaf may vote for several targets.
    def forest(votes, targets, positive):
        a = dict(nodes_treeids=[], nodes_nodeids=[], nodes_featureids=[], nodes_modes=[], nodes_values=[], nodes_truenodeids=[],
                 nodes_falsenodeids=[], nodes_missing_value_tracks_true=[])
        v = {f"{votes}_{n}": [] for n in ("treeids", "nodeids", "ids", "weights")}
        modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
        for tree in range(2):
            for node in range(7):
                a["nodes_treeids"].append(tree)
                a["nodes_nodeids"].append(node)
                a["nodes_featureids"].append(int(r.integers(0, 3)))
                a["nodes_modes"].append(modes[(3 * tree + node) % 6] if node < 3 else "LEAF")
                a["nodes_values"].append(float(np.float32(r.integers(-2, 3))))
                a["nodes_truenodeids"].append(2 * node + 1 if node < 3 else 0)
                a["nodes_falsenodeids"].append(2 * node + 2 if node < 3 else 0)
                a["nodes_missing_value_tracks_true"].append(int(node % 2))
                if node < 3:
                    continue
                for target in targets:
                    weight = float(r.random() if positive else r.standard_normal())
                    for key, value in (("treeids", tree), ("nodeids", node), ("ids", target), ("weights", weight)):
                        v[f"{votes}_{key}"].append(value)
        return {**a, **v}

    x = r.integers(-3, 4, (8, 3)).astype(np.float32)
    missing = x.copy()
    missing[::2, 1] = np.nan
    for kind in (np.float32, np.float64):
        s.add(f"tree_regressor_{np.dtype(kind).name}", "TreeEnsembleRegressor", [x.astype(kind)], domain=ML, n_targets=1, **forest("target", [0], False))
    for how in ("SUM", "AVERAGE", "MIN", "MAX"):
        s.add(f"tree_regressor_{how}", "TreeEnsembleRegressor", [missing], domain=ML, n_targets=2, aggregate_function=how,
              base_values=[0.5, -0.25], **forest("target", [0, 1], False))
    for t in TRANSFORMS:
        s.add(f"tree_classifier_{t}", "TreeEnsembleClassifier", [missing], ("i64", "f32"), ML, classlabels_int64s=[4, 5, 6], post_transform=t,
              **forest("class", [0, 1, 2], False))
        for positive in (True, False):
            s.add(f"tree_classifier_two_{'positive' if positive else 'mixed'}_{t}", "TreeEnsembleClassifier", [x], ("str", "f32"), ML,
                  classlabels_strings=["no", "yes"], post_transform=t, **forest("class", [0], positive))
    s.add("tree_classifier_base", "TreeEnsembleClassifier", [x], ("i64", "f32"), ML, classlabels_int64s=[4, 5, 6], base_values=[0.1, 0.2, 0.3],
          **forest("class", [0, 1, 2], True))
    s.add("tree_classifier_two_base", "TreeEnsembleClassifier", [x], ("i64", "f32"), ML, classlabels_int64s=[4, 5], base_values=[0.1],
          **forest("class", [0], True))
