import type { RunContext, TokenOperation } from './context.js';
import { setTokenDecay } from './decays.js';
import type { TokenInputs } from './inputs.js';
import { decayRows } from './matrix/matrices.js';

/** What a token does to the state of a value head, in the recurrent form. */
export interface TokenSteps {
  /** The token's decays by key dimension. */
  readonly decay: Float64Array;
  /** What the state lacks of the value, v − Sᵀk; of additive writes the value. */
  readonly lack: Float64Array;
  /** What is written beside the key. */
  readonly write: Float64Array;
  readonly out: Float64Array;
  /** Does an operation of row t of the inputs to the state. */
  readonly run: (
    operation: TokenOperation,
    state: Float64Array,
    inputs: TokenInputs,
    t: number,
  ) => void;
  /** Does all of a token's operations in order. */
  readonly runAll: (state: Float64Array, inputs: TokenInputs, t: number) => void;
}

/** Steps of one token at a time; their vectors are good until the same step of the next token. */
export function tokenSteps(context: RunContext): TokenSteps {
  const { products, rounding, scale, isDelta, gateCount, order, shape } = context;
  const { keyDim, valueDim } = shape;
  const size = keyDim * valueDim;
  const column = () => new Float64Array(valueDim);
  const [lack, write, out] = [column(), column(), column()];
  const decay = new Float64Array(keyDim).fill(1);

  const steps: TokenSteps = {
    decay,
    lack,
    write,
    out,
    run(operation, state, { q, k, v, beta, gates }, t) {
      const key = k.subarray(t * keyDim, (t + 1) * keyDim);
      switch (operation) {
        case 'decay':
          if (gateCount === 0) return;
          setTokenDecay(decay, gates, [t * gateCount, gateCount], rounding);
          decayRows(state, decay, valueDim);
          // It is stored once a token.
          rounding.value('sum', state, 0, size);
          return;
        case 'read':
          lack.set(v.subarray(t * valueDim, (t + 1) * valueDim));
          if (!isDelta) return;
          products.product(out, key, state, [1, keyDim, valueDim]);
          rounding.value('sum', out, 0, valueDim);
          for (let c = 0; c < valueDim; c++) lack[c] -= out[c];
          return;
        case 'write':
          for (let c = 0; c < valueDim; c++) write[c] = beta[t] * lack[c];
          if (isDelta) rounding.value('write', write, 0, valueDim);
          products.product(state, key, write, [keyDim, 1, valueDim], true);
          rounding.value('state', state, 0, size);
          return;
        case 'output': {
          const query = q.subarray(t * keyDim, (t + 1) * keyDim);
          products.product(out, query, state, [1, keyDim, valueDim]);
          rounding.value('sum', out, 0, valueDim);
          for (let c = 0; c < valueDim; c++) out[c] *= scale;
        }
      }
    },
    runAll(state, inputs, t) {
      for (const operation of order) steps.run(operation, state, inputs, t);
    },
  };
  return steps;
}
