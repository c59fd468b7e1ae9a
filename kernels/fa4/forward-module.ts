import type { TensorCoreKernels } from '../../src/simd/index.js';
import { binary } from './forward.generated.js';

/** What the module exports; addresses are of its memory. Its source tells the layouts. */
export interface ForwardKernels extends TensorCoreKernels {
  softmaxStep(
    scores: number,
    weights: number,
    visible: number,
    maxima: number,
    sums: number,
    alphas: number,
    rescales: number,
    rows: number,
    columns: number,
    isFirst: number,
    isCounted: number,
    parameters: number,
  ): void;
  scaleSubtract(scores: number, count: number, scale: number, bias: number): void;
  rescaleOutput(
    out: number,
    alphas: number,
    rows: number,
    columns: number,
    isCounted: number,
    parameters: number,
  ): void;
  finish(
    out: number,
    result: number,
    lse: number,
    maxima: number,
    sums: number,
    rows: number,
    columns: number,
    parameters: number,
  ): void;
}

/** An instance of the module of the forward, with memory of its own. */
export function instantiateForward(): ForwardKernels {
  const abort = (): void => {
    throw new Error('the WebAssembly kernels of the fa4 forward aborted');
  };
  const module = new WebAssembly.Module(Buffer.from(binary, 'base64'));
  const instance = new WebAssembly.Instance(module, { env: { abort } });
  return instance.exports as unknown as ForwardKernels;
}
