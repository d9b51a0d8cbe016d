"""Names the rules know: what computes, what only allocates or views, what belongs to a library."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


# Products and convolutions: a candidate may call the library's under policy `library`.
LIBRARY = words(
    "mm bmm matmul addmm baddbmm addbmm mv addmv dot vdot inner outer ger linear bilinear einsum tensordot chain_matmul "
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d convolution multi_dot"
)
LIBRARY_LAYERS = words("Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d")
# Layers that only rename or reshape.
PLUMBING_LAYERS = words("Identity Flatten Unflatten Module ParameterList ParameterDict ModuleList ModuleDict")

ELEMENTWISE = words(
    "abs absolute acos add addcdiv addcmul angle asin atan atan2 bitwise_and bitwise_not bitwise_or bitwise_xor ceil celu "
    "clamp clamp_max clamp_min clip copysign cos cosh deg2rad digamma div divide elu eq erf erfc erfinv exp exp2 expm1 "
    "fix float_power floor floor_divide fmax fmin fmod frac ge gelu greater greater_equal gt hardshrink hardsigmoid "
    "hardswish hardtanh heaviside hypot isclose isfinite isinf isnan ldexp le leaky_relu lerp less less_equal lgamma log "
    "log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor logit logsigmoid lt masked_fill maximum "
    "minimum mish mul multiply nan_to_num ne neg negative nextafter not_equal pow prelu rad2deg reciprocal relu relu6 "
    "remainder round rrelu rsqrt rsub selu sgn sigmoid sign silu sin sinc sinh softplus softshrink softsign sqrt square "
    "sub subtract swish tan tanh tanhshrink threshold true_divide trunc where xlogy"
)
REDUCTIONS = words(
    "all amax amin aminmax any argmax argmin argsort count_nonzero cummax cummin cumprod cumsum cumulative_trapezoid diff "
    "dist logcumsumexp logsumexp max mean median min mode msort nanmean nanmedian nansum norm prod quantile renorm sort std "
    "std_mean sum topk trace trapz unique var var_mean kthvalue bincount histc cdist vector_norm matrix_norm"
)
LAYERED = words(
    "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d "
    "adaptive_max_pool3d alpha_dropout avg_pool1d avg_pool2d avg_pool3d batch_norm binary_cross_entropy "
    "binary_cross_entropy_with_logits channel_shuffle cosine_embedding_loss cosine_similarity cross_entropy ctc_loss "
    "dropout embedding embedding_bag fold gaussian_nll_loss glu grid_sample group_norm gumbel_softmax hinge_embedding_loss "
    "huber_loss instance_norm interpolate kl_div l1_loss layer_norm local_response_norm log_softmax lp_pool1d lp_pool2d "
    "margin_ranking_loss max_pool1d max_pool2d max_pool3d mse_loss multi_head_attention_forward nll_loss normalize "
    "pairwise_distance pixel_shuffle pixel_unshuffle poisson_nll_loss rms_norm scaled_dot_product_attention smooth_l1_loss "
    "soft_margin_loss softmax softmin triplet_margin_loss unfold upsample cumsum lstm gru rnn_tanh rnn_relu "
    "native_layer_norm native_group_norm native_batch_norm"
)
ALGEBRA = words(
    "cholesky cross det diag_embed eig eigh fft flip gather gradient index_add index_select inverse kron lstsq lu "
    "matrix_exp matrix_power pinverse qr roll scatter scatter_add scatter_reduce slogdet solve svd take tril triu "
    "repeat_interleave searchsorted bucketize"
)
COMPUTE = ELEMENTWISE | REDUCTIONS | LAYERED | ALGEBRA
# In-place calls that only fill or copy.
FILLING = frozenset(
    {"fill_", "zero_", "copy_", "set_", "resize_", "requires_grad_", "detach_", "squeeze_", "unsqueeze_"}
)

# Attributes and methods that show that a value is a tensor.
TENSOR_EVIDENCE = words(
    "shape data_ptr contiguous stride dtype device is_contiguous dim ndim element_size is_cuda new_empty "
    "view_as storage untyped_storage requires_grad nelement"
)
# Methods that give a tensor from a tensor (the rest is taken to give something else).
TENSOR_METHODS = words(
    "contiguous view reshape view_as expand expand_as permute transpose t to float double half bfloat16 int long detach "
    "clone cpu cuda squeeze unsqueeze flatten unflatten narrow select chunk movedim swapaxes new_empty new_zeros new_full "
    "type mT data"
)
ALLOCATIONS = words(
    "empty empty_like empty_strided empty_permuted zeros zeros_like ones ones_like full full_like tensor as_tensor "
    "from_numpy arange linspace eye rand randn"
)

# BLAS and deep-learning libraries by the name a linker or loader knows them by.
LIBRARY_FILES = words(
    "openblas mkl_rt mkl_core mkl_intel blas cblas atlas blis flexiblas dnnl mkldnn onednn cublas cublasLt cudnn cutlass "
    "torch torch_cpu torch_cuda torch_python c10 aten armpl nvblas"
)
FRAMEWORKS = words(
    "jax tensorflow cupy numexpr onnxruntime openvino tvm mxnet paddle sklearn scipy tinygrad mlx pandas polars"
)
