import {
  decodeTensor,
  encodeFromFloat64,
  formats,
  type Tensor,
} from '../../../src/formats/index.js';
import type { Problem } from '../../../src/problem/index.js';
import { isWellInside, rowScores, vanishingWeight } from '../value-scaling.js';
import { gradientLaw, type GradientCase } from './gradient-law.js';
import { mapGradients } from './arrange-gradients.js';
import {
  arrangedDifference,
  erring,
  gradientDifference,
  timesGradients,
  type ErringGradients,
} from './compare-gradients.js';
import { randomValues } from '../../problems/index.js';
import type { LawTools } from '../law.js';

/** The tensor with other elements, which its format has. */
function withElements(tensor: Tensor, element: (x: number, index: number) => number): Tensor {
  const values = decodeTensor(tensor).map(element);
  return { ...tensor, data: encodeFromFloat64(formats[tensor.format], values) };
}

/** dO = 0: every term of every gradient is a product with 0. */
export const gradientsOfZero = gradientLaw({
  statement: 'A dO of zeros gives zeros, exactly',
  reason:
    'Every term of dQ, dK and dV is a product with dO. Accumulators that are not zeroed, scratch of another launch and weights that overflow show.',
  strengths: ['bits'],
  usual: 'bits',
  choices: 1,
  violation: async ({ problem, dout }, { runGradients }) => {
    const run = await runGradients(
      problem,
      withElements(dout, () => 0),
    );
    const zeros = mapGradients((name) => new Float64Array(run.gradients[name].length));
    return gradientDifference(
      { values: zeros, errors: null },
      { values: run.gradients, errors: null },
      { shape: run.shape, usual: 'exactly', changed: 'with a dO of zeros' },
    );
  },
});

/** log2 of the factors, by choice. */
const exponents = [1, -1, 3, -3, 5, -5] as const;

/** Elements of dO and V whose products with weights are far from where fp32, and bf16, underflow. */
const steady = { least: 2 ** -12, most: 2 ** 12, weight: 2 ** -30 };

/** Formats whose exponents leave room: intermediate results rounded to them scale with their operands. */
const roomy: readonly string[] = ['bf16', 'fp32'];

/** Whether no rounding on the way to the gradients is of a subnormal number: then all scale by powers of two. */
function isSteady(problem: Problem, dout: Tensor): boolean {
  const isUsable = (x: number) =>
    x === 0 || (Math.abs(x) >= steady.least && Math.abs(x) <= steady.most);
  // A sink may take all of the weight.
  if (problem.sink !== undefined) return false;
  if (!roomy.includes(problem.q.format) || !roomy.includes(dout.format)) return false;
  if (![dout, problem.v].every((tensor) => decodeTensor(tensor).every(isUsable))) return false;
  for (const { scores, radii } of rowScores(problem)) {
    const [highest, lowest] = scores.reduce<readonly [number, number]>(
      ([most, least], score, j) => [
        Math.max(most, score + radii[j]),
        Math.max(least, score - radii[j]),
      ],
      [-Infinity, -Infinity],
    );
    const isKnown = scores.every(
      (score, j) =>
        Math.exp(score - radii[j] - highest) >= steady.weight ||
        Math.exp(score + radii[j] - lowest) <= vanishingWeight,
    );
    if (!isKnown) return false;
  }
  return true;
}

/** dO times a power of two: to the bit where nothing underflows, and that is promised, else within the bounds. */
async function scaledViolation(
  { problem, dout, choice }: GradientCase,
  tools: LawTools,
): Promise<string | null> {
  const exponent = exponents[choice % exponents.length];
  const factor = 2 ** exponent;
  const { format } = dout;
  const scalable = withElements(dout, (x) =>
    isWellInside(format, x) && isWellInside(format, x * factor) ? x : 0,
  );
  const usual = await tools.runGradients(problem, scalable);
  const scaled = await tools.runGradients(
    problem,
    withElements(scalable, (x) => x * factor),
  );
  const isExact = tools.strength === 'bits' && isSteady(problem, scalable);
  const gradients = (run: typeof usual): ErringGradients =>
    isExact ? { values: run.gradients, errors: null } : erring(run, tools);
  const isInside = (x: number) => isWellInside(usual.tensors.dq.format, x);
  return gradientDifference(timesGradients(gradients(usual), factor), gradients(scaled), {
    shape: usual.shape,
    usual: `times 2^${exponent} at first`,
    changed: `with dO times 2^${exponent}`,
    ...(isExact
      ? {
          elements: (name, index) =>
            [1, factor].every((by) => isInside(usual.gradients[name][index] * by)),
        }
      : {}),
  });
}

/** dO cut in two by elements: the gradients of both parts add up to those of the whole, within the bounds. */
async function partsViolation(
  { problem, dout, choice }: GradientCase,
  tools: LawTools,
): Promise<string | null> {
  const random = randomValues(choice);
  const isFirst = Uint8Array.from({ length: dout.data.length }, () => random.integer(0, 1));
  const whole = await tools.runGradients(problem, dout);
  const parts = [];
  for (const part of [0, 1])
    parts.push(
      erring(
        await tools.runGradients(
          problem,
          withElements(dout, (x, i) => (isFirst[i] === part ? x : 0)),
        ),
        tools,
      ),
    );
  const [first, second] = parts;
  const added = (of: 'values' | 'errors') =>
    mapGradients((name) => first[of][name].map((x, i) => x + second[of][name][i]));
  return gradientDifference(
    { values: added('values'), errors: added('errors') },
    erring(whole, tools),
    {
      shape: whole.shape,
      usual: 'of two parts of dO together',
      changed: 'of all of it',
    },
  );
}

/** Forms of the law: dO scaled, and dO cut in two. */
const linearForms = [scaledViolation, partsViolation] as const;

/**
 * dO times a power of two (even choices), and dO cut in two parts, of which each element is in one (odd ones). Bits of
 * scaled gradients are compared in bf16 and fp32, where no weight, value or dO is so small that something on the way
 * underflows; else results are compared within the bounds.
 */
export const gradientsLinear = gradientLaw({
  statement: 'dO times a power of two gives gradients times that; those of two parts of dO add up',
  reason:
    'dQ, dK and dV are linear in dO, and roundings scale by powers of two while nothing overflows or underflows. A D of another launch, thresholds and sums in 16 bits show.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: linearForms.length * exponents.length,
  violation: (lawCase, tools) =>
    linearForms[lawCase.choice % linearForms.length](
      { ...lawCase, choice: Math.floor(lawCase.choice / linearForms.length) },
      tools,
    ),
});

/** The problem twice, each time with tensors of its own; for odd choices with another dO in between. */
export const gradientsDeterminism = gradientLaw({
  statement: 'The same problem gives the same gradients again',
  reason:
    'Where no order of sums is open the bits are the same; where atomics add in any order two runs still stay within the bound of both. Races, scratch that is not zeroed and statistics that are read too early do not.',
  strengths: ['bits', 'bound'],
  usual: 'bits',
  choices: 2,
  violation: async ({ problem, dout, choice }, tools) => {
    const copy = () => withElements(dout, (x) => x);
    const usual = await tools.runGradients(problem, copy());
    if (choice === 1)
      await tools.runGradients(
        problem,
        withElements(dout, (x) => -x),
      );
    const changed = await tools.runGradients(problem, copy());
    const words = choice === 1 ? 'again, after another dO' : 'again';
    return arrangedDifference({ usual, changed, words }, tools);
  },
});
