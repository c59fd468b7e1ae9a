export { lazily } from './lazily.js';
export { createAllocator, instantiator, type Allocator, type PlacedStruct } from './webassembly.js';
export { WorkingMemories } from './working-memories.js';
