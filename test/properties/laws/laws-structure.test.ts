import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { runKernelModel } from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import {
  attentionProblem,
  checkKernel,
  laws,
  modelPromises,
  resolvePromises,
  runCase,
  type AttentionKernel,
  type KernelPromises,
  type LawId,
  type LawStrength,
  type RegimeName,
} from '../../../properties/index.js';
import { replaceElements } from '../../../properties/laws/replace-elements.js';
import {
  arrangeProblem,
  arrangeReference,
  copyProblem,
  indices,
  permutation,
  spreadChoice,
} from '../../../properties/laws/transform-problem.js';
import { isPromised } from '../../../properties/laws/promised-problem.js';
import { rowScores } from '../../../properties/laws/value-scaling.js';
import { encodeProblem, decodeProblem } from '../../../properties/problems/plain-problem.js';
import { formats, patternsOf } from '../../../src/formats/index.js';
import { problemShape, type Problem, type Tensor } from '../../../src/problem/index.js';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);

const structureLaws = [
  'determinism',
  'heads-independent',
  'query-order',
  'value-scaling',
  'masked-keys',
  'masked-nan-keys',
  'masked-nan-values',
  'nan-containment',
  'decode-equals-prefill',
  'padding',
  'causal-is-window',
  'grouped-heads',
  'empty-rows',
] as const satisfies readonly LawId[];

/** Every law here at one strength, or at the one that it has. */
function promising(strength: LawStrength, ids: readonly LawId[] = structureLaws) {
  return Object.fromEntries(
    ids.map((id) => {
      const own = laws[id].strengths;
      return [id, own.includes(strength) ? strength : own[0]];
    }),
  );
}

const small: KernelPromises['sizes'] = {
  queries: { max: 20 },
  keys: { max: 20 },
  qkDim: { max: 6 },
  vDim: { max: 6 },
};

/** Regimes that problems of these sizes can show. */
const usualRegimes: readonly RegimeName[] = [
  'normal',
  'large',
  'constant-keys',
  'tiny',
  'ones',
  'wide-exponents',
  'negative-scores',
];

const naive: AttentionKernel = (problem) => runKernelModel('naive-fp32', problem);

/** A kernel that solves another problem than the one it is given. */
const mistaken =
  (mistake: (problem: Problem) => Problem): AttentionKernel =>
  (problem) =>
    naive(mistake(problem));

/** A kernel whose outputs are changed after the fact. */
const spoilt =
  (spoil: (problem: Problem, out: Tensor, lse: Float32Array) => void): AttentionKernel =>
  (problem) => {
    const { out, lse } = runKernelModel('naive-fp32', problem);
    spoil(problem, out, lse.data as Float32Array);
    return { out, lse };
  };

const hasNan = (...tensors: readonly Tensor[]): boolean =>
  tensors.some(({ data, format }) => {
    const plain = decodeProblem(single(format, data));
    return plain.values.q.some((x) => !Number.isFinite(x));
  });

/** A problem whose Q is a tensor's data, to decode it. */
function single(format: Tensor['format'], data: Tensor['data']): Problem {
  const tensor: Tensor = { format, shape: [1, 1, 1, data.length], data };
  return { q: tensor, k: tensor, v: tensor, scale: 1, causal: false, window: null, softcap: null };
}

function fillNan(tensor: Tensor): void {
  const format = formats[tensor.format];
  patternsOf(tensor.data, format).fill(Number(format.canonicalNan));
}

/** Aligned to the top left, as when the two lengths are taken for one. */
const topLeft = mistaken((problem) => {
  const { queries, keys } = problemShape(problem);
  const more = keys - queries;
  const { left, right } = problem.window ?? { left: -1, right: -1 };
  if (more <= 0 || !(problem.causal || problem.window)) return problem;
  const last = Math.min(right < 0 ? Infinity : right, problem.causal ? 0 : Infinity);
  // The diagonal stands `more` keys further right than this kernel has it.
  const limit = last === Infinity ? -1 : last - more;
  if (last !== Infinity && limit < 0) return arrangeProblem(problem, { keys: indices(queries) });
  return { ...problem, causal: false, window: { left: left < 0 ? -1 : left + more, right: limit } };
});

const alwaysCausal = mistaken((problem) => ({ ...problem, causal: true }));
const neverMasked = mistaken((problem) => ({ ...problem, causal: false, window: null }));
const noWindows = mistaken((problem) => ({ ...problem, window: null }));

/** Windows reach one key less far to the left. */
const shortWindows = mistaken((problem) => {
  const { left = -1, right = -1 } = problem.window ?? {};
  return left < 1 ? problem : { ...problem, window: { left: left - 1, right } };
});

const firstKvHead = mistaken((problem) => {
  const { kvHeads } = problemShape(problem);
  return arrangeProblem(problem, { kvHeads: indices(kvHeads).map(() => 0) });
});

const interleavedKvHeads = mistaken((problem) => {
  const { heads, kvHeads } = problemShape(problem);
  return arrangeProblem(problem, { kvHeads: indices(heads).map((head) => head % kvHeads) });
});

/** V without its small numbers, as when it is quantized to a grid of its own. */
const coarseValues = mistaken((problem) => {
  const plain = decodeProblem(problem);
  const v = plain.values.v.map((x) => (Math.abs(x) < 0.5 ? 0 : x));
  return encodeProblem({ ...plain, values: { ...plain.values, v } });
});

const addedMask = spoilt(({ k }, out) => {
  if (hasNan(k)) fillNan(out);
});

const nanEverywhere = spoilt(({ q, k, v }, out) => {
  if (hasNan(q, k, v)) fillNan(out);
});

const swallowsNans = mistaken((problem) => {
  const plain = decodeProblem(problem);
  const finite = (values: Float64Array) => values.map((x) => (Number.isNaN(x) ? 0 : x));
  const { q, k, v } = plain.values;
  return encodeProblem({ ...plain, values: { q: finite(q), k: finite(k), v: finite(v) } });
});

const zeroLse = spoilt((_, __, lse) => {
  lse.forEach((x, row) => (lse[row] = x === -Infinity ? 0 : x));
});

/** Averages V over all keys where a row sees none. */
const uniformEmptyRows: AttentionKernel = (problem) => {
  const { out, lse } = runKernelModel('naive-fp32', problem);
  const plain = decodeProblem(problem);
  const zero = plain.values.q.map(() => 0);
  const open = { ...plain, causal: false, window: null, values: { ...plain.values, q: zero } };
  const mean = runKernelModel('naive-fp32', encodeProblem(open));
  const [words, means] = [out, mean.out].map((t) => patternsOf(t.data, formats[t.format]));
  const perRow = words!.length / Math.max(lse.data.length, 1);
  (lse.data as Float32Array).forEach((x, row) => {
    const [from, to] = [row * perRow, (row + 1) * perRow];
    if (x === -Infinity) words!.set(means!.subarray(from, to), from);
  });
  return { out, lse };
};

/** A kernel that has a state: every other run is of V backwards. */
function stateful(): AttentionKernel {
  let runs = 0;
  return (problem) => {
    const { keys } = problemShape(problem);
    const backwards = arrangeProblem(problem, { keys: indices(keys).reverse() });
    return naive(runs++ % 2 === 1 ? { ...problem, v: backwards.v } : problem);
  };
}

async function check(
  kernel: AttentionKernel,
  ids: readonly LawId[],
  strength: LawStrength,
  runs: number,
  promises: KernelPromises = {},
) {
  const promised = { sizes: small, ...promises, laws: promising(strength, ids) };
  const scope = { laws: ids, regimes: usualRegimes, shrinkSeconds: 0 };
  return checkKernel(kernel, promised, { ...scope, runs, seed: 11 });
}

const both: readonly LawStrength[] = ['bits', 'bound'];

describe('correct kernels', () => {
  inTurn.each([
    ['bits', 16],
    ['bound', 3],
  ] as const)('naive-fp32 obeys every law, %s', async (strength, runs) => {
    const promises: KernelPromises = {
      formats: ['fp32', 'bf16', 'fp16', 'e4m3', 'e5m2'],
      softcap: true,
      scales: ['default', 'odd', 'negative', 'zero'],
      specialValues: strength === 'bits',
      blockKeys: 4,
    };
    const { laws: results } = await check(naive, structureLaws, strength, runs, promises);
    for (const { id, failure, ...result } of results)
      expect({ id, failure: failure?.statement, runs: result.runs }).toEqual({
        id,
        failure: undefined,
        runs,
      });
  });

  inTurn(
    'fa4 with its split fixed obeys every law to the bit, but for NaNs in hidden values',
    async () => {
      const settings = new Map([
        ['exp2.frequency', '10'],
        ['exp2.reserve', '4'],
        ['exp2.startFragment', '1'],
      ]);
      const { kernel, promises } = modelPromises('fa4', settings);
      const ids = structureLaws.filter((id) => id !== 'masked-nan-values');
      const { laws: results } = await check(kernel, ids, 'bits', 3, {
        ...promises,
        sizes: { ...small, keys: { max: 140 } },
      });
      for (const { id, failure } of results)
        expect({ id, failure: failure?.statement }).toEqual({ id, failure: undefined });
    },
  );

  it('what underflows is no violation of value-scaling', async () => {
    const { choices } = laws['value-scaling'];
    const promised = resolvePromises({ formats: ['fp32', 'fp16'] });
    const obeys = async (format: 'fp32' | 'fp16', k: number[], v: number[]) => {
      const problem = encodeProblem({
        sizes: {
          batch: 1,
          kvHeads: 1,
          groupSize: 1,
          queries: 1,
          keys: k.length,
          qkDim: 1,
          vDim: 1,
        },
        formats: { q: format, k: format, v: format },
        values: { q: Float64Array.of(1), k: Float64Array.from(k), v: Float64Array.from(v) },
        scale: 1,
        causal: false,
        window: null,
        softcap: null,
      });
      for (let choice = 0; choice < choices; choice++) {
        const lawCase = { problem, choice };
        const result = await runCase('value-scaling', lawCase, naive, promised, {
          diagnose: false,
        });
        expect({ choice, ...result }).toMatchObject({ choice, status: 'held' });
      }
    };
    // Products of 0.6 · 2^-149 round up to 2^-149 one by one, unless they are scaled.
    const rest = indices(40);
    const score = Math.log(1.2 * 2 ** -48);
    await obeys('fp32', [...rest.map(() => score), 0], [...rest.map(() => 2 ** -102), 2 ** -124]);
    // An output that cancels down to the subnormals of its format.
    await obeys('fp16', [0, 0], [2 ** -10, -(2 ** -10) * (1 - 3 * 2 ** -11)]);
  });
});

describe('every law fails on what it forbids', () => {
  const cases: readonly (readonly [
    name: string,
    law: LawId,
    kernel: AttentionKernel,
    strengths: readonly LawStrength[],
    sentence: RegExp,
  ])[] = [
    ['a state', 'determinism', stateful(), ['bits'], /at first but .* again/],
    ['kv head 0 for all', 'heads-independent', firstKvHead, both, /batches and heads/],
    ['a mask nobody asked for', 'query-order', alwaysCausal, both, /queries in another order/],
    ['a grid for V', 'value-scaling', coarseValues, ['bits'], /with V times 2\^-?\d+/],
    ['no masks', 'masked-keys', neverMasked, ['bits'], /other numbers at keys/],
    ['a mask that is added', 'masked-nan-keys', addedMask, ['bits'], /but NaN with NaN or ∞ in K/],
    ['values of no weight', 'masked-nan-values', nanEverywhere, ['bits'], /NaN or ∞ in V/],
    ['NaN everywhere', 'nan-containment', nanEverywhere, ['bits'], /does not depend/],
    ['no NaN anywhere', 'nan-containment', swallowsNans, ['bits'], /finite with NaN in [QKV] at/],
    ['top left', 'decode-equals-prefill', topLeft, both, /alone/],
    ['no windows', 'padding', noWindows, both, /unseen keys in front|without the last/],
    ['no windows', 'causal-is-window', noWindows, both, /with window/],
    ['short windows', 'causal-is-window', shortWindows, both, /with window/],
    ['interleaved heads', 'grouped-heads', interleavedKvHeads, both, /shared by [23] query heads/],
    ['a mean', 'empty-rows', uniformEmptyRows, both, /^O at .* not 0, though/],
    ['LSE 0', 'empty-rows', zeroLse, both, /^the LSE at .* is 0, not -Infinity/],
  ];
  const planted = cases.flatMap(([name, law, kernel, strengths, sentence]) =>
    strengths.map((strength) => ({ name, law, kernel, strength, sentence })),
  );

  inTurn.each(sampled(planted, 10))(
    '$law, $strength: $name',
    async ({ law, kernel, strength, sentence }) => {
      const promises: KernelPromises = {
        formats: ['bf16'],
        blockKeys: 4,
        specialValues: law === 'nan-containment',
      };
      const { laws: results } = await check(kernel, [law], strength, 100, promises);
      const { failure } = results[0];
      expect(failure?.statement).toMatch(sentence);
      if (strength === 'bits') expect(failure!.statement).toMatch(/head \d+, query \d+/);
    },
  );

  it('and shrinks: a mask that is ignored to one query and two keys at most', async () => {
    const { laws: results } = await checkKernel(
      neverMasked,
      { formats: ['bf16'], sizes: small },
      { laws: ['masked-keys'], regimes: ['normal'], runs: 20, seed: 5, shrinkSeconds: 60 },
    );
    const { problem, choice } = results[0].failure!.lawCase;
    expect(choice).toBe(0);
    expect(problemShape(problem)).toMatchObject({ batch: 1, heads: 1, qkDim: 1, vDim: 1 });
    const { queries, keys } = problemShape(problem);
    expect(queries * keys).toBeLessThanOrEqual(2);
  });

  inTurn(
    'fa4 multiplies hidden values by 0, and its polynomial drops the NaN of a score',
    async () => {
      const { kernel } = modelPromises('fa4');
      const keys = 60;
      const problem = encodeProblem({
        sizes: { batch: 1, kvHeads: 1, groupSize: 1, queries: 2, keys, qkDim: 1, vDim: 1 },
        formats: { q: 'bf16', k: 'bf16', v: 'bf16' },
        values: {
          q: new Float64Array(2).fill(1),
          k: new Float64Array(keys).fill(1),
          v: new Float64Array(keys).fill(1),
        },
        scale: 1,
        causal: true,
        window: null,
        softcap: null,
      });
      const statements = async (id: LawId, specialValues: boolean) => {
        const promised = resolvePromises({ specialValues, laws: { 'masked-nan-values': 'bits' } });
        const found: string[] = [];
        // Of nan-containment those that plant in K.
        for (let choice = 1; choice < laws[id].choices; choice += 3) {
          const lawCase = { problem, choice };
          const result = await runCase(id, lawCase, kernel, promised, { diagnose: false });
          if (result.status === 'violated') found.push(result.statement);
        }
        return found;
      };
      expect(await statements('masked-nan-keys', false)).toEqual([]);
      expect((await statements('masked-nan-values', false)).length).toBeGreaterThan(0);
      expect(await statements('nan-containment', false)).toEqual([]);
      const swallowed = await statements('nan-containment', true);
      expect(swallowed.length).toBeGreaterThan(0);
      for (const statement of swallowed) expect(statement).toContain('finite with NaN in K at');
    },
  );
});

/** Problems with everything but softcaps, of quick sizes. */
const problems = attentionProblem({
  queries: { max: 12 },
  keys: { max: 12 },
  qkDim: { max: 4 },
  vDim: { max: 4 },
  formats: ['fp64', 'fp32', 'bf16', 'fp16', 'e4m3'],
  regimes: ['normal', 'constant-keys'],
});

const bytesOf = ({ data }: Tensor) =>
  Array.from(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));

describe('transformations of problems', () => {
  it('an arrangement and its inverse give the problem back, to the bit', () => {
    fc.assert(
      fc.property(problems, fc.nat(20), (problem, choice) => {
        const { queries, keys, batch } = problemShape(problem);
        const forward = {
          batches: permutation(batch, choice),
          queries: permutation(queries, choice),
          keys: permutation(keys, choice),
        };
        const inverse = (order: readonly number[]) => order.map((_, i) => order.indexOf(i));
        const back = arrangeProblem(arrangeProblem(problem, forward), {
          batches: inverse(forward.batches),
          queries: inverse(forward.queries),
          keys: inverse(forward.keys),
        });
        for (const name of ['q', 'k', 'v'] as const) {
          expect(bytesOf(back[name])).toEqual(bytesOf(problem[name]));
          expect(back[name].shape).toEqual(problem[name].shape);
        }
      }),
      { numRuns: 60, seed: 1 },
    );
  });

  it('a copy shares no memory', () => {
    const [problem] = fc.sample(problems, { numRuns: 1, seed: 4 });
    const copy = copyProblem(problem!);
    expect(copy.k.data.buffer).not.toBe(problem!.k.data.buffer);
    expect(bytesOf(copy.k)).toEqual(bytesOf(problem!.k));
  });

  it('the arranged exact attention is that of the arranged problem, within the radii', () => {
    fc.assert(
      fc.property(problems, fc.nat(20), (given, choice) => {
        const problem = { ...given, causal: false, window: null };
        const { batch, queries, heads } = problemShape(problem);
        const rows = {
          batches: permutation(batch, choice),
          queries: permutation(queries, choice).slice(0, Math.ceil(queries / 2)),
        };
        const arranged = arrangeProblem(problem, rows);
        const moved = arrangeReference(attentionOracle(problem), rows, arranged);
        const direct = attentionOracle(arranged);
        expect(moved.shape).toEqual(direct.shape);
        expect(moved.quantities.lse.values.length).toBe(batch * heads * rows.queries.length);
        const close = (name: 'out' | 'lse') => {
          const [ofMoved, ofDirect] = [moved.quantities[name], direct.quantities[name]];
          return ofDirect.values.every(
            (x, i) => Math.abs(x - ofMoved.values[i]) <= ofDirect.radius[i] + ofMoved.radius[i],
          );
        };
        expect(close('out') && close('lse')).toBe(true);
      }),
      { numRuns: 25, seed: 2 },
    );
  });

  it('replaced elements change and no others, in formats of every width', () => {
    fc.assert(
      fc.property(problems, fc.nat(), (problem, nat) => {
        const { k } = problem;
        const at = nat % k.data.length;
        const [, heads, rows, width] = k.shape as [number, number, number, number];
        const one = { fp64: 0x3ff0000000000000n, fp32: 0x3f800000, bf16: 0x3f80, fp16: 0x3c00 };
        const bits = { ...one, e4m3: 0x38 }[k.format as keyof typeof one | 'e4m3'];
        const changed = replaceElements(k, ({ batch, head, row, column }) =>
          ((batch * heads + head) * rows + row) * width + column === at ? bits : null,
        );
        const values = (tensor: Tensor) => decodeProblem({ ...problem, k: tensor }).values.k;
        const wanted = values(k);
        wanted[at] = 1;
        expect(values(changed)).toEqual(wanted);
      }),
      { numRuns: 60, seed: 3 },
    );
  });
});

describe('what the laws go by', () => {
  it('permutations hold every index once, backwards for choice 0', () => {
    expect(permutation(4, 0)).toEqual([3, 2, 1, 0]);
    fc.assert(
      fc.property(fc.nat(40), fc.nat(100), (count, choice) => {
        const order = permutation(count, choice);
        expect([...order].sort((a, b) => a - b)).toEqual(indices(count));
        expect(permutation(count, choice)).toEqual(order);
      }),
    );
  });

  it('spread choices stay in range, do not fall, and begin at 0', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 64 }), fc.integer({ min: 1, max: 300 }), (n, count) => {
        const spread = indices(n).map((choice) => spreadChoice(choice, n, count));
        expect(spread[0]).toBe(0);
        expect(spread.at(-1)).toBeLessThan(count);
        expect(spread).toEqual([...spread].sort((a, b) => a - b));
      }),
    );
  });

  it('a problem is promised by its masks, heads, empty rows and sizes', () => {
    const [problem] = fc.sample(problems, { numRuns: 1, seed: 9 });
    const whole = { ...problem!, causal: false, window: null, softcap: null };
    const grouped = arrangeProblem(whole, { heads: [0, 0], kvHeads: [0] });
    const plain = arrangeProblem(whole, { heads: [0], kvHeads: [0] });
    const { queries, keys } = problemShape(plain);
    const promised = (promises: KernelPromises, of: Problem = plain) =>
      isPromised(of, resolvePromises(promises));
    expect(promised({})).toBe(true);
    expect(promised({ causal: false }, { ...plain, causal: true })).toBe(false);
    expect(promised({ window: false }, { ...plain, window: { left: 1, right: 1 } })).toBe(false);
    expect(promised({}, { ...plain, softcap: 3 })).toBe(false);
    expect(promised({ groupedHeads: false })).toBe(true);
    expect(promised({}, grouped)).toBe(true);
    expect(promised({ groupedHeads: false }, grouped)).toBe(false);
    expect(promised({ sizes: { keys: { max: keys - 1 } } })).toBe(false);
    expect(promised({ causal: 'only' })).toBe(false);
    expect(promised({ causal: 'only' }, { ...plain, causal: true })).toBe(true);
    expect(promised({ groupSizes: [1, 4] })).toBe(true);
    expect(promised({ groupSizes: [1, 4] }, grouped)).toBe(false);
    expect(promised({ groupSizes: [2] }, grouped)).toBe(true);
    expect(promised({ multiples: { keys } })).toBe(true);
    expect(promised({ multiples: { keys: keys + 1 } })).toBe(false);
    expect(promised({ sizes: { queries: { min: queries + 1 } } })).toBe(false);
    const empty = { ...arrangeProblem(plain, { queries: indices(keys + 1).map(() => 0) }) };
    expect(promised({ emptyRows: false }, { ...empty, causal: true })).toBe(false);
    expect(promised({ emptyRows: true }, { ...empty, causal: true })).toBe(true);
  });

  it("a row's scores have the oracle's LSE", () => {
    fc.assert(
      fc.property(problems, (problem) => {
        const {
          quantities: {
            lse: { values: lse },
          },
        } = attentionOracle(problem);
        for (const { row, scores, radii } of rowScores(problem)) {
          const top = Math.max(...scores);
          const sum = scores.reduce((total, score) => total + Math.exp(score - top), 0);
          const found = scores.length === 0 ? -Infinity : top + Math.log(sum);
          if (found === lse[row]) continue;
          expect(Math.abs(found - lse[row])).toBeLessThanOrEqual(1e-12 * (1 + Math.abs(top)));
          expect(radii.every((radius) => radius >= 0)).toBe(true);
        }
      }),
      { numRuns: 40, seed: 5 },
    );
  });
});
