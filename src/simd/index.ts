export {
  chunkElements,
  createScalarEngine,
  type ArrayFunction,
  type ScalarEngine,
  type SegmentKernel,
} from './scalar-engine.js';
export {
  createTensorCoreTileEngine,
  type TensorCoreKernels,
  type TensorCoreTileEngine,
} from './tensor-core.js';
export { createAllocator, instantiator, type Allocator } from './webassembly.js';
