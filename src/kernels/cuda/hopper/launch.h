// The launches of the Hopper kernels. Each does what it is told; a build without these kernels answers
// cudaErrorInvalidValue.
#pragma once

#include <cuda_runtime_api.h>

#include "kernels/cuda/hopper/params.h"
#include "kernels/cuda/limits.h"

namespace cosformer::kernels::cuda {

// What the choice wants to know of the build and the current device: whether the kernels were compiled, whether the
// driver describes tensors to TMA, and how many blocks of the narrow heads' cooperative launch a multiprocessor holds.
bool hopper_kernels_compiled();
bool driver_has_tensor_maps();
int narrow_cooperative_blocks(bool keeps_states);

// Describes the rows of queries and results to TMA, and with `columns` those of keys and values: tiles of the 16 rows
// of a warp, or of the 64 of a chunk. Whether the driver could.
enum class TileRows : std::uint8_t { kOfWarp = 16, kOfChunk = 64 };
bool describe_tensors(HopperParams& params, bool columns, TileRows rows);

// Sums and sweeps of narrow and of wide heads.
cudaError_t launch_narrow(HopperRole role, Mode mode, Fetch fetch, const HopperParams& params, cudaStream_t stream);
cudaError_t launch_wide(HopperRole role, Mode mode, Fetch fetch, const HopperParams& params, cudaStream_t stream);
// The forward sweep of wide heads that keeps the state in registers.
cudaError_t launch_wide_in_registers(Fetch fetch, const HopperParams& params, cudaStream_t stream);
// Narrow heads of full attention whose sequences are not cut, in one launch: the forward pass (the keys' sum, then the
// rows), or from the queries' gradient on (with the queries' sum) the gradients of the keys and values.
cudaError_t launch_narrow_single(HopperRole first_role, Fetch fetch, const HopperParams& first,
                                 const HopperParams& second, cudaStream_t stream);

// The causal forward sweep and the sums that it starts from, in one launch of p.segments blocks for each head, all on
// the device at the same time; rows by TMA. A slot of narrow heads takes kCooperativeSumFloats, one of wide heads what
// it always takes.
cudaError_t launch_narrow_cooperatively(const HopperParams& params, cudaStream_t stream);
cudaError_t launch_wide_cooperatively(const HopperParams& params, cudaStream_t stream);
// The sums of the keys' or the queries' segments of wide heads and their scan, in one launch whose blocks are all on
// the device at the same time: slots then hold what each segment starts from.
cudaError_t launch_wide_cooperative_scan(HopperRole role, Fetch fetch, const HopperParams& params, cudaStream_t stream);

// Full attention with a decay of narrow heads, queries and keys the same tokens: the states after pairs of chunks, of
// the keys or the queries, and then the sweep that meets both sides.
cudaError_t launch_states_after(bool of_queries, Fetch fetch, const HopperParams& params, cudaStream_t stream);
cudaError_t launch_both_sides(HopperRole role, Fetch fetch, const HopperParams& params, cudaStream_t stream);

}  // namespace cosformer::kernels::cuda
