import { attentionOracle } from '../../oracles/index.js';
import type { AttentionOutputs } from '../../properties/index.js';
import { encodeFromFloat64, formats } from '../../src/formats/index.js';
import type { Problem } from '../../src/problem/index.js';

/** The best kernel there can be: the exact answer rounded to the format of Q, and the LSE to fp32. */
export function exactKernel(problem: Problem): Required<AttentionOutputs> {
  const { format } = problem.q;
  const {
    shape,
    quantities: {
      out: { values: out },
      lse: { values: lse },
    },
  } = attentionOracle(problem, {
    accuracy: { outputFormat: format, ulpFraction: 2 ** -4, magnitudeFraction: 0 },
  });
  const { batch, heads, queries, vDim } = shape;
  return {
    out: {
      format,
      shape: [batch, heads, queries, vDim],
      data: encodeFromFloat64(formats[format], out),
    },
    // Of the oracle's fp64, the last bits hang on its level, and that on keys that a row does not see.
    lse: { format: 'fp32', shape: [batch, heads, queries], data: Float32Array.from(lse) },
  };
}
