import { decodeTensor } from '../../../src/formats/index.js';
import type { Mamba2Inputs, RecurrentProblem } from '../../../src/problem/index.js';
import type { RecurrentRounding } from '../arithmetic.js';
import type { Mamba2Change } from './change.js';

/** D x by element of x. */
function skipsOf({ v }: RecurrentProblem, d: NonNullable<Mamba2Inputs['d']>): Float64Array {
  const values = decodeTensor(d);
  const [, , heads, valueDim] = v.shape;
  const isByHead = d.shape.length === 1;
  return decodeTensor(v).map((x, i) => {
    const head = Math.floor(i / valueDim) % heads;
    return x * values[isByHead ? head : head * valueDim + (i % valueDim)];
  });
}

/** Adds D x to outputs: the product and the sum round. */
function addSkips(out: Float64Array, skips: Float64Array, rounding: RecurrentRounding): void {
  rounding.value('sum', skips, 0, skips.length);
  for (let i = 0; i < out.length; i++) out[i] += skips[i];
  rounding.value('sum', out, 0, out.length);
}

/** z σ(z), the exponential and what is made of it rounded. */
function gatesOf(
  z: Float64Array,
  rounding: RecurrentRounding,
  gate: Mamba2Change['gate'],
): Float64Array {
  if (gate) return z.map(gate);
  const powers = z.map((x) => Math.exp(-x));
  rounding.value('decay', powers, 0, powers.length);
  const gates = z.map((x, i) => x / (1 + powers[i]));
  rounding.value('sum', gates, 0, gates.length);
  return gates;
}

/** Makes Mamba-2's outputs of those of its recurrence, in place: (y + D x) z σ(z). */
export function finishOutputs(
  out: Float64Array,
  problem: RecurrentProblem,
  { d, z }: Mamba2Inputs,
  rounding: RecurrentRounding,
  { gate, addsBehindGate = false }: Mamba2Change = {},
): void {
  const skips = d && skipsOf(problem, d);
  if (skips && !addsBehindGate) addSkips(out, skips, rounding);
  if (z) {
    const gates = gatesOf(decodeTensor(z), rounding, gate);
    for (let i = 0; i < out.length; i++) out[i] *= gates[i];
    rounding.value('sum', out, 0, out.length);
  }
  if (skips && addsBehindGate) addSkips(out, skips, rounding);
  rounding.output('out', out, 0, out.length);
}
