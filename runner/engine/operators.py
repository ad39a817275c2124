"""What PyTorch's operators mean for "whose work is it": free, compute, or a library's heavy one.
Standard library only.
"""

import re

# Allocation, views, copies, casts, fills, joins, shape logic.
_FREE = """
empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like
new_zeros ones ones_like new_ones full full_like new_full scalar_tensor fill fill_ zero zero_ copy
copy_ _to_copy to clone contiguous detach detach_ alias lift_fresh lift view _unsafe_view reshape
_reshape_alias view_as expand expand_as permute transpose transpose_ t numpy_T mT adjoint slice
select narrow as_strided as_strided_ squeeze squeeze_ unsqueeze unsqueeze_ unbind split
split_with_sizes split_with_sizes_copy chunk tensor_split cat concat stack hstack vstack unfold
diagonal view_as_real view_as_complex real imag _conj conj resolve_conj resolve_neg _neg_view
arange linspace constant_pad_nd pad repeat flatten unflatten ravel movedim swapaxes
broadcast_tensors broadcast_to slice_scatter select_scatter resize_ set_ item _local_scalar_dense
is_pinned pin_memory record_stream is_same_size sym_size sym_stride sym_numel sym_storage_offset
dim numel size stride storage_offset is_contiguous _assert_async _assert_tensor_metadata
_nested_tensor_from_tensor_list equal is_nonzero seed
"""

# Allocation, fills, views: all that an answer needs which is the same for every input.
_CONSTANT = """
empty empty_like empty_strided empty_permuted new_empty new_empty_strided zeros zeros_like
new_zeros ones ones_like new_ones full full_like new_full scalar_tensor fill fill_ zero zero_
detach alias view _unsafe_view reshape _reshape_alias expand permute transpose t slice select
as_strided squeeze unsqueeze
"""

# What a library does as a whole, and what the task asks a kernel for.
_HEAVY = """
mm bmm addmm addmm_ addbmm baddbmm baddbmm_ matmul linear mv addmv addmv_ dot vdot inner outer ger
addr einsum tensordot chain_matmul kron bilinear _trilinear _addmm_activation _int_mm _scaled_mm
_scaled_grouped_mm _grouped_mm _weight_int4pack_mm _weight_int8pack_mm _sparse_mm convolution
_convolution convolution_overrideable cudnn_convolution cudnn_convolution_relu
cudnn_convolution_add_relu cudnn_convolution_transpose mkldnn_convolution miopen_convolution
slow_conv3d_forward _slow_conv2d_forward conv_depthwise3d _conv_depthwise2d conv1d conv2d conv3d
conv_transpose1d conv_transpose2d conv_transpose3d im2col col2im _softmax softmax _log_softmax
log_softmax _safe_softmax _masked_softmax logsumexp logcumsumexp layer_norm native_layer_norm
group_norm native_group_norm batch_norm native_batch_norm cudnn_batch_norm
_native_batch_norm_legit _native_batch_norm_legit_functional _batch_norm_with_update
_batch_norm_impl_index _native_batch_norm_legit_no_training _batch_norm_no_update instance_norm
rms_norm _fused_rms_norm norm native_norm renorm _weight_norm _weight_norm_interface cholesky
cholesky_solve cholesky_inverse _cholesky_solve_helper lu_solve lu_unpack _lu_with_info
triangular_solve svd qr geqrf orgqr ormqr lstsq inverse det slogdet logdet pinverse matrix_exp
sort argsort msort topk kthvalue median nanmedian mode unique _unique _unique2 unique_consecutive
unique_dim searchsorted bucketize quantile histc bincount scaled_dot_product_attention
multi_head_attention_forward _native_multi_head_attention embedding embedding_bag _embedding_bag
_embedding_bag_forward_only embedding_renorm_ max_pool1d max_pool2d max_pool3d
max_pool2d_with_indices max_pool3d_with_indices avg_pool1d avg_pool2d avg_pool3d
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d _adaptive_avg_pool2d
_adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
fractional_max_pool2d fractional_max_pool3d mkldnn_max_pool2d lp_pool1d lp_pool2d grid_sampler
grid_sampler_2d grid_sampler_3d affine_grid_generator cudnn_grid_sampler
_cudnn_affine_grid_generator nll_loss nll_loss_forward nll_loss2d_forward cross_entropy_loss
ctc_loss _ctc_loss _cudnn_ctc_loss _cdist_forward _pdist_forward cdist pdist cosine_embedding_loss
lstm gru rnn_tanh rnn_relu _cudnn_rnn _thnn_fused_lstm_cell _thnn_fused_gru_cell pixel_shuffle
channel_shuffle _fused_adam_ _fused_adamw_ _fused_sgd_ _fused_adagrad_ _foreach_norm
"""

FREE = frozenset(_FREE.split())
CONSTANT = frozenset(_CONSTANT.split())
HEAVY = frozenset(name.strip("_") for name in _HEAVY.split())  # in place or not, with `_` or not
HEAVY_PREFIXES = (
    "linalg_",
    "_linalg_",
    "fft_",
    "_fft_",
    "_scaled_dot_product_",
    "upsample_",
    "_upsample_",
    "_efficient_",
)
HEAVY_NAMESPACES = frozenset(
    {"quantized", "mkldnn", "mkldnn_prepacked", "mkl", "onednn", "_quantized", "fbgemm"}
) | {"prepacked", "xnnpack", "sparse", "_native"}
# Products, convolutions, norms, pools and their like have more names than anybody lists.
HEAVY_PARTS = re.compile(
    r"mm(?:_|$)|gemm|matmul|linear|conv(?!ert)|lstm|gru(?:_|$)|rnn|softmax|attention|transformer"
    r"|norm(?:_|$)|pool[123]d|sort(?:_|$)|histogram|embedding|_loss"
)

FREE_KIND, COMPUTE_KIND, HEAVY_KIND = "free", "compute", "heavy"


def base_name(operator: str) -> str:
    """`aten::add.Tensor` -> `add`."""
    return operator.rpartition("::")[2].partition(".")[0]


def kind_of(operator: str) -> str:
    """One of "free", "compute", "heavy" for an operator as the dispatcher names it."""
    base = base_name(operator)
    heavy = (
        operator.partition("::")[0] in HEAVY_NAMESPACES
        or base.startswith(HEAVY_PREFIXES)
        or base.strip("_") in HEAVY
        or bool(HEAVY_PARTS.search(base))
    )
    if heavy:
        return HEAVY_KIND
    return FREE_KIND if base in FREE else COMPUTE_KIND


def is_delegated(operator: str, delegates: tuple[str, ...]) -> bool:
    """Does the published contract let a library do this one? `linalg_eigh` also covers
    `_linalg_eigh`.
    """
    bare = base_name(operator).lstrip("_")
    return any(bare == allowed.lstrip("_") for allowed in delegates)
