import { problemMask, type Problem } from '../../../src/problem/index.js';
import { decodeTensor } from '../../../src/formats/index.js';
import { formatNumber } from '../../../src/words/index.js';
import { NotApplicable, type GradientRun, type LawTools } from '../law.js';
import { judgedViolation } from '../within-bound.js';
import { gradientLaw, type GradientCase } from './gradient-law.js';

/** dQ, dK and dV, and dBias and dSink where the kernel gives them, against the oracle: see `auditGradients`. */
export const gradientsWithinBound = gradientLaw({
  statement: 'dQ, dK and dV are as near to exact gradients as rounding lets them be',
  reason:
    'Every operation of a correct backward errs by a rounding at most, and what these add up to at an element, over a row, a tile, a column and a head, is bounded.',
  strengths: ['bound'],
  usual: 'bound',
  choices: 1,
  violation: async ({ problem, dout }, { runGradients, judgeGradients }) =>
    judgedViolation(judgeGradients(await runGradients(problem, dout))),
});

/** A sum over a head in words, its value and its exact value, and the most that the kernel's may be off by. */
interface ConservedSum {
  readonly what: string;
  readonly sum: number;
  readonly wanted: number;
  readonly error: number;
}

/** The relative error of the fp64 sums here, in terms of the sizes of their summands. */
const ownError = 2 ** -45;

/** Adds up terms and their errors. */
class Total {
  sum = 0;
  error = 0;

  add(term: number, error = 0): void {
    this.sum += term;
    this.error += error + ownError * Math.abs(term);
  }
}

type Measured = ReturnType<LawTools['measureGradients']>;

/** The rows of queries of a kv head, over [batch, heads, queries]. */
function rowsOfGroup({ heads, kvHeads, groupSize, queries }: GradientRun['shape'], kvHead: number) {
  const firstHead = Math.floor(kvHead / kvHeads) * heads + (kvHead % kvHeads) * groupSize;
  return { first: firstHead * queries, end: (firstHead + groupSize) * queries };
}

/** Σ dV over the keys, and Σ dO over the rows that see a key, of each kv head and column. */
function* valueSums(
  { shape, problem, gradients, dout }: GradientRun,
  { gradients: exact }: Measured,
) {
  const { batch, kvHeads, keys, queries, vDim } = shape;
  const mask = problemMask(problem, shape);
  const given = decodeTensor(dout);
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++)
    for (let c = 0; c < vDim; c++) {
      const [found, wanted] = [new Total(), new Total()];
      for (let row = kvHead * keys; row < (kvHead + 1) * keys; row++)
        found.add(gradients.dv[row * vDim + c], exact.dv.bound.total[row * vDim + c]);
      const { first, end } = rowsOfGroup(shape, kvHead);
      for (let row = first; row < end; row++)
        if (mask.ranges(Math.floor(row / queries), row % queries).length > 0)
          wanted.add(given[row * vDim + c]);
      yield sumOf(`Σ dV over the keys of column ${c}`, kvHead, found, wanted);
    }
}

/** Σ dK over the keys: Σ over queries of Σ dS, which is 0, times the query. */
function* scoreSums({ shape, gradients }: GradientRun, { gradients: exact }: Measured) {
  const { batch, kvHeads, keys, qkDim } = shape;
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++)
    for (let c = 0; c < qkDim; c++) {
      const found = new Total();
      for (let row = kvHead * keys; row < (kvHead + 1) * keys; row++)
        found.add(gradients.dk[row * qkDim + c], exact.dk.bound.total[row * qkDim + c]);
      yield sumOf(`Σ dK over the keys of column ${c}`, kvHead, found, new Total());
    }
}

/** ⟨Q, dQ⟩ of the heads of a group, and ⟨K, dK⟩. */
function* pairings({ shape, problem, gradients }: GradientRun, { gradients: exact }: Measured) {
  const { batch, kvHeads, keys, qkDim } = shape;
  const [q, k] = [decodeTensor(problem.q), decodeTensor(problem.k)];
  const pair = (name: 'dq' | 'dk', tensor: Float64Array, first: number, end: number) => {
    const total = new Total();
    const { bound } = exact[name];
    for (let i = first * qkDim; i < end * qkDim; i++)
      total.add(gradients[name][i] * tensor[i], bound.total[i] * Math.abs(tensor[i]));
    return total;
  };
  for (let kvHead = 0; kvHead < batch * kvHeads; kvHead++) {
    const { first, end } = rowsOfGroup(shape, kvHead);
    const ofKeys = pair('dk', k, kvHead * keys, (kvHead + 1) * keys);
    yield sumOf('⟨K, dK⟩', kvHead, ofKeys, pair('dq', q, first, end));
  }
}

function sumOf(what: string, kvHead: number, found: Total, wanted: Total): ConservedSum {
  return {
    what: `${what} of kv head ${kvHead}`,
    sum: found.sum,
    wanted: wanted.sum,
    error: found.error + wanted.error,
  };
}

/** The sums, each with the value that it equals, and the problems on which it does. */
const conserved = [
  {
    equals: 'Σ dO',
    sums: valueSums,
    admits: ({ dropout, sink }: Problem) => dropout === undefined && sink === undefined,
  },
  {
    equals: '0',
    sums: scoreSums,
    admits: ({ softcap, sink }: Problem) => softcap === null && sink === undefined,
  },
  { equals: '⟨Q, dQ⟩', sums: pairings, admits: () => true },
] as const;

/** One of the sums against the worst that its terms may be off by together. */
async function worstCase(
  { problem, dout, choice }: GradientCase,
  tools: LawTools,
): Promise<string | null> {
  const { equals, sums, admits } = conserved[choice];
  if (!admits(problem)) throw new NotApplicable('the sum is not conserved in such problems');
  const run = await tools.runGradients(problem, dout);
  let compared = 0;
  for (const { what, sum, wanted, error } of sums(run, tools.measureGradients(run))) {
    // Nothing is known of a term.
    if (!Number.isFinite(error) || !Number.isFinite(wanted)) continue;
    compared++;
    if (Math.abs(sum - wanted) <= error) continue;
    return `${what} is ${formatNumber(sum)} where ${equals === '0' ? 'it is 0' : `${equals} is ${formatNumber(wanted)}`}; rounding explains ${formatNumber(error)}`;
  }
  if (compared === 0) throw new NotApplicable('no sum of the problem has a bound');
  return null;
}

/** All of the sums against the limits of independent roundings: an audit's tests. */
async function asIndependent(
  { problem, dout }: GradientCase,
  { runGradients, judgeGradients }: LawTools,
): Promise<string | null> {
  const { verdict } = judgeGradients(await runGradients(problem, dout));
  const isOfSums = ({ test }: { readonly test: string }) => /-(sum|pairing)$/.test(test);
  const findings = verdict.findings.filter(isOfSums);
  return judgedViolation({ verdict: { ...verdict, findings } });
}

/**
 * Three sums: Σ dV, Σ dK and ⟨K, dK⟩. In the first forms each against the worst case of its terms, in the last all against what
 * independent roundings leave, which is less by far where there are many keys.
 */
export const gradientsConserved = gradientLaw({
  statement: 'Σ dV is Σ dO, Σ dK is 0, and ⟨K, dK⟩ is ⟨Q, dQ⟩',
  reason:
    'The weights of a row sum to 1 and their derivatives to 0, and dQ and dK are made of one dS. Tiles that are lost, added twice or transposed in one of them, and a D of another row, break it.',
  strengths: ['bound'],
  usual: 'bound',
  choices: conserved.length + 2,
  violation: (lawCase, tools) =>
    (lawCase.choice < conserved.length ? worstCase : asIndependent)(lawCase, tools),
});
