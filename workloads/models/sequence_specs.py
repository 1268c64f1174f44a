"""Options of the models of signals and of text; light to import, the networks themselves are loaded in ``build``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from raysim.workloads.errors import WorkloadError
from raysim.workloads.models.model_options import ModelOptions
from raysim.workloads.option_types import Help, PositiveInt, ShareBelowOne

if TYPE_CHECKING:
    from raysim.workloads.federated_data import InputSpec
    from raysim.workloads.models.classifier import Classifier


@dataclass(frozen=True)
class Cnn1d(ModelOptions):
    """The network ``cnn`` along one axis, for signals [channels, length] of at least 4 points, or for tokens.

    Two convolutions of 5 points (32 and 64 channels, padding 2), each with max-pooling by 2 and ReLU, then a fully
    connected layer with ReLU. Tokens are embedded, and instead of the poolings each of the 64 channels has its largest
    value in the text (Kim 2014), where padding counts for nothing.
    """

    name: ClassVar[str] = "cnn1d"
    tokens: ClassVar[bool | None] = None

    units: Annotated[PositiveInt, Help("width of the fully connected layer")] = 128
    embedding: Annotated[PositiveInt, Help("width of a token's embedding; signals have none")] = 64

    def check_shape(self, inputs: InputSpec) -> None:
        if inputs.vocabulary:
            return
        if len(inputs.input_shape) != 2 or inputs.input_shape[1] < 4:
            raise WorkloadError(
                f"Model 'cnn1d' needs signals of shape (channels, length) with a length of at least 4, but the "
                f"workload's inputs have shape {inputs.input_shape}. Choose 'mlp', which takes any shape."
            )

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        from raysim.workloads.models.classifier import Classifier
        from raysim.workloads.models.mlp_cnn import mcmahan_cnn
        from raysim.workloads.models.sequence_networks import CnnBody

        if inputs.vocabulary:
            body = CnnBody(inputs.vocabulary, self.embedding, self.units, inputs.padded)
            return Classifier(body, nn.Linear(self.units, inputs.classes))
        return mcmahan_cnn(inputs.input_shape, inputs.classes, self.units)


@dataclass(frozen=True)
class EmbeddingBag(ModelOptions):
    """The mean of the embeddings of a text's tokens, and the head (Joulin et al. 2017, fastText without n-grams).

    Padding is not among the tokens.
    """

    name: ClassVar[str] = "embedding-bag"
    tokens: ClassVar[bool | None] = True

    embedding: Annotated[PositiveInt, Help("width of a token's embedding")] = 64

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        from raysim.workloads.models.classifier import Classifier
        from raysim.workloads.models.sequence_networks import BagBody

        body = BagBody(inputs.vocabulary, self.embedding, inputs.padded)
        return Classifier(body, nn.Linear(self.embedding, inputs.classes))


@dataclass(frozen=True)
class Lstm(ModelOptions):
    """LEAF's network for Shakespeare (Caldas et al. 2018): embedding, stacked LSTMs, the last state to the head.

    With its 80 characters, 8 dimensions and two layers of 256 units it has 819,920 parameters: LEAF's 817,872, and a
    second bias in each of the 2048 gates, which torch's LSTM has and TensorFlow's has not.
    """

    name: ClassVar[str] = "lstm"
    tokens: ClassVar[bool | None] = True

    embedding: Annotated[PositiveInt, Help("width of a token's embedding", "LEAF, Caldas et al. 2018")] = 8
    hidden: Annotated[PositiveInt, Help("units of each layer", "LEAF, Caldas et al. 2018")] = 256
    layers: Annotated[PositiveInt, Help("stacked layers", "LEAF, Caldas et al. 2018")] = 2

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        from raysim.workloads.models.classifier import Classifier
        from raysim.workloads.models.sequence_networks import LstmBody

        body = LstmBody(inputs.vocabulary, self.embedding, self.hidden, self.layers, inputs.padded)
        return Classifier(body, nn.Linear(self.hidden, inputs.classes))


@dataclass(frozen=True)
class Transformer(ModelOptions):
    """A small decoder-only transformer (Radford et al. 2019, GPT-2), which predicts what follows its input.

    Embeddings of tokens and positions, layers with causal self-attention and GELU, normalized before each part; the
    last token's features go to the head. Padding comes after it, where no token looks.
    """

    name: ClassVar[str] = "transformer"
    tokens: ClassVar[bool | None] = True

    width: Annotated[PositiveInt, Help("width of a token's features, a multiple of heads")] = 64
    layers: Annotated[PositiveInt, Help("layers")] = 2
    heads: Annotated[PositiveInt, Help("heads of the attention")] = 4
    dropout: Annotated[ShareBelowOne, Help("dropout in each layer")] = 0.0

    def check_shape(self, inputs: InputSpec) -> None:
        if self.width % self.heads:
            raise WorkloadError(
                f"Model 'transformer': width = {self.width} is no multiple of heads = {self.heads}. Set width to "
                f"{self.width // self.heads * self.heads or self.heads}."
            )

    def network(self, inputs: InputSpec) -> Classifier:
        from torch import nn

        from raysim.workloads.models.classifier import Classifier
        from raysim.workloads.models.sequence_networks import DecoderBody, TransformerLayers

        layers = TransformerLayers(self.width, self.layers, self.heads, self.dropout)
        body = DecoderBody(inputs.vocabulary, inputs.input_shape[0], layers, inputs.padded)
        return Classifier(body, nn.Linear(self.width, inputs.classes))
