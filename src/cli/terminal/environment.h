// What libraries read from the environment while they are loaded.
#pragma once

namespace cosformer::cli {

// Where a variable that libraries read only while they are loaded should have another value, sets it and starts the
// program anew, the same process with the same arguments. Does nothing to variables that are set already.
// - OPENBLAS_CORETYPE: an OpenBLAS that does not know the processor falls back to kernels of 2004, a sixth of the speed
//   of those that the processor can run.
// - GOMP_SPINCOUNT, where the command `computes`: torch's threads wait for each other by spinning, which starves them
//   where other programs run. They shall sleep sooner; where nothing else runs that costs nothing.
void restart_with_fitting_environment(char** argv, bool computes);

}  // namespace cosformer::cli
