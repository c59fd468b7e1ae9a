import { instantiator, type TensorCoreKernels } from '../../../src/simd/index.js';
import { binary } from './forward.generated.js';

/** What the module exports; addresses are of its memory. Its source tells the layouts. */
export interface ForwardKernels extends TensorCoreKernels, StageKernels {
  scaleSubtract(scores: number, count: number, scale: number, bias: number): void;
  quadSoftmaxStep: StageKernels['softmaxStep'];
  rescaleRows: StageKernels['rescaleOutput'];
  quadFinish: StageKernels['finish'];
  quadFinishPartial: StageKernels['finishPartial'];
}

/** The stages between and after the matrix products. */
export interface StageKernels {
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
  finishPartial(
    out: number,
    lse: number,
    maxima: number,
    sums: number,
    rows: number,
    columns: number,
    parameters: number,
  ): void;
}

/** Makes instances of the module of the forward, each with memory of its own. */
export const instantiateForward = instantiator<ForwardKernels>(binary, 'the fa4 forward');
