import type { InstructionDefinitions } from './definition.js';

/**
 * Fences. They compute nothing: what they order is followed by the tracker of orders, so a missing one
 * is found as a race. Source: PTX ISA, `fence`, `fence.proxy`, `tcgen05.fence`.
 */
export const fenceDefinitions: InstructionDefinitions<
  | 'fence.mbarrier_init'
  | 'fence.proxy.async'
  | 'tcgen05.fence::before_thread_sync'
  | 'tcgen05.fence::after_thread_sync'
> = {
  'fence.mbarrier_init': {
    execute: ({ tracker }, warp) => tracker?.fence(warp, 'mbarrier_init'),
  },
  'fence.proxy.async': { execute: ({ tracker }, warp) => tracker?.fence(warp, 'proxy.async') },
  'tcgen05.fence::before_thread_sync': {
    execute: ({ tracker }, warp) => tracker?.fence(warp, 'before_thread_sync'),
  },
  'tcgen05.fence::after_thread_sync': {
    execute: ({ tracker }, warp) => tracker?.fence(warp, 'after_thread_sync'),
  },
};
