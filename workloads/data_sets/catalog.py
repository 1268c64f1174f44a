"""The published data sets that workloads read: source, license, files with checksums, and place."""

from __future__ import annotations

from dataclasses import dataclass

UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
CREATIVE_COMMONS = "CC BY 4.0"


@dataclass(frozen=True)
class File:
    """A file to download.

    Args:
        url: where it is.
        digest: "sha256:…" of the file itself, or "md5:…" where its publisher gives no better one.
    """

    url: str
    digest: str

    @property
    def name(self) -> str:
        """Its name without the place."""
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class DataSet:
    """A published data set.

    Args:
        name: of its workload, or of a set that workloads read.
        title: what it is.
        source: its page.
        license: its terms.
        megabytes: about how much is downloaded.
        place: its file or folder below the data folder.
        layout: how it is published, a name of ``raysim.workloads.data_sets.converters.CONVERTERS``.
        files: what to download; empty where the publisher has nothing to fetch by itself.
        how: what to do where there are no files.
    """

    name: str
    title: str
    source: str
    license: str
    megabytes: float
    place: str
    layout: str
    files: tuple[File, ...] = ()
    how: str = ""


def _idx(base: str, digests: tuple[str, str, str, str]) -> tuple[File, ...]:
    names = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    return tuple(File(f"{base}/{name}-ubyte.gz", f"md5:{digest}") for name, digest in zip(names, digests, strict=True))


DATA_SETS = (
    DataSet(
        "mnist", "handwritten digits, 70,000 images 28x28", "http://yann.lecun.com/exdb/mnist", "CC BY-SA 3.0", 12,
        "images/mnist.npz", "idx",
        _idx("https://ossci-datasets.s3.amazonaws.com/mnist", (
            "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
            "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c",
        )),
    ),
    DataSet(
        "fashion-mnist", "clothes, 70,000 images 28x28", "https://github.com/zalandoresearch/fashion-mnist", "MIT", 31,
        "images/fashion-mnist.npz", "idx",
        _idx("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com", (
            "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
            "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310",
        )),
    ),
    DataSet(
        "usps", "handwritten digits, 9,298 images 16x16, a domain of digit-domains",
        "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass.html", "not stated", 8,
        "images/usps.npz", "libsvm", (
            File("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/usps.bz2",
                 "md5:ec16c51db3855ca6c91edd34d0e9b197"),
            File("https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/usps.t.bz2",
                 "md5:8ea070ee2aca1ac39742fdd1ef5ed118"),
        ),
    ),
    DataSet(
        "cifar10", "photographs, 60,000 images 32x32 of 10 classes", "https://www.cs.toronto.edu/~kriz/cifar.html",
        "not stated", 170, "images/cifar10.npz", "cifar",
        (File("https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "md5:c58f30108f718f92721af3b95e74349a"),),
    ),
    DataSet(
        "cifar100", "photographs, 60,000 images 32x32 of 100 classes", "https://www.cs.toronto.edu/~kriz/cifar.html",
        "not stated", 169, "images/cifar100.npz", "cifar",
        (File("https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "md5:eb9058c3a382ffc7106e4002c42a8d85"),),
    ),
    DataSet(
        "retinamnist", "fundus photographs, 1,600 images 28x28", "https://medmnist.com", CREATIVE_COMMONS, 3.3,
        "images/retinamnist.npz", "medmnist", (
            File("https://zenodo.org/records/10519652/files/retinamnist.npz",
                 "sha256:254915f5f0a2074665c4676356824cf4ef4a3bcab233894b4bafcaf48962bd69"),
        ),
    ),
    DataSet(
        "femnist", "handwritten digits and letters by writers, 62 classes", "https://github.com/TalwalkarLab/leaf",
        "NIST, free to use", 0, "images/femnist.npz", "leaf-images",
        how="clone the source, run data/femnist/preprocess.sh -s niid --sf 0.05 -k 0 -t sample in data/femnist, then "
        "python -m raysim.data convert femnist LEAF/data/femnist/data",
    ),
    DataSet(
        "shakespeare", "plays by roles, 80 characters", "https://github.com/TalwalkarLab/leaf", "public domain text", 0,
        "text/shakespeare", "leaf-text",
        how="clone the source, run data/shakespeare/preprocess.sh -s niid --sf 0.2 -k 0 -t sample in data/shakespeare, "
        "then python -m raysim.data convert shakespeare LEAF/data/shakespeare/data",
    ),
    DataSet(
        "tinyshakespeare", "a million characters of plays", "https://github.com/karpathy/char-rnn",
        "public domain text", 1.1, "text/tinyshakespeare", "files", (
            File("https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
                 "sha256:86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
        ),
    ),
    DataSet(
        "adult", "census of 1994, 48,842 rows", "https://archive.ics.uci.edu/dataset/2/adult", CREATIVE_COMMONS, 6,
        "tabular/adult", "files", (
            File(f"{UCI}/adult/adult.data", "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d"),
            File(f"{UCI}/adult/adult.test", "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05"),
        ),
    ),
    DataSet(
        "heart-disease", "patients of four hospitals, 920 rows", "https://archive.ics.uci.edu/dataset/45/heart+disease",
        CREATIVE_COMMONS, 0.04, "tabular/heart-disease", "files", tuple(
            File(f"{UCI}/heart-disease/processed.{hospital}.data", f"sha256:{digest}") for hospital, digest in (
                ("cleveland", "a74b7efa387bc9d108d7d0115d831fe9b414b29ae7124f331b622b4efa0427c8"),
                ("hungarian", "d1ad108f785768cd3d7e82dc522e6f5a61eea93cccfb3a46ee8076f73fc3d796"),
                ("switzerland", "834a405ccf5b66ab4056bb77794adc8df0b7125186454c0a1d002d33c6c3b314"),
                ("va", "e7c93d8d0d2acdadfa4c5e8de768e2191e7f618b952e29623f1f0d5949ff6b8f"),
            )
        ),
    ),
    DataSet(
        "har", "what thirty people do, by their telephones, 10,299 windows",
        "https://archive.ics.uci.edu/dataset/240/human+activity+recognition+using+smartphones", "no commercial use", 60,
        "har/har.npz", "uci-har",
        how="download and unpack the archive of the source, then python -m raysim.data convert har 'UCI HAR Dataset'",
    ),
)  # fmt: skip
BY_NAME = {data.name: data for data in DATA_SETS}
