import { describe, expect, it } from 'vitest';
import {
  quantiseProblem,
  runKernelModel,
  type PremiseDeclaration,
} from '../../../kernels/index.js';
import { attentionOracle } from '../../../oracles/index.js';
import { scoreProblem } from '../../../properties/index.js';
import { quantisationFaults } from '../../../src/audit/diagnosis/hypotheses/quantised/quantisation-faults.js';
import {
  judgeOutputs,
  modelPremises,
  premisePresets,
  quantisedInputs,
} from '../../../src/audit/index.js';
import { decodeTensor, encodeFromFloat64, formats } from '../../../src/formats/index.js';
import type { Problem, Tensor } from '../../../src/problem/index.js';
import { turns } from '../../setup/turns.js';

const inTurn = turns(import.meta.url);
const queries = 160;

/** Two heads whose keys have a mean, so that smoothing does something. */
function drawn(keys: number, seed: number): Problem {
  const sizes = { queries, keys, dim: 64, format: 'fp16' } as const;
  const heads = [0, 1].map((head) =>
    scoreProblem('normal-1', { ...sizes, seed: seed + 100 * head }),
  );
  const joined = (name: 'q' | 'k' | 'v'): Tensor => {
    const values = heads.flatMap((one, head) =>
      Array.from(decodeTensor(one[name]), (x, at) =>
        name === 'k' ? x + (head === 0 ? 3 : -2) * Math.cos(at % 64) : x,
      ),
    );
    const rows = name === 'q' ? queries : keys;
    const data = encodeFromFloat64(formats.fp16, Float64Array.from(values));
    return { format: 'fp16', shape: [1, 2, rows, 64], data };
  };
  return { ...heads[0], q: joined('q'), k: joined('k'), v: joined('v') };
}

/** What a kernel without any error but its output's rounding gives for the problem that it multiplies. */
function outputsOf(multiplied: Problem): { out: Tensor; lse: Tensor } {
  const { shape, quantities } = attentionOracle(multiplied);
  const { batch, heads, vDim } = shape;
  const data = encodeFromFloat64(formats.fp16, quantities.out.values);
  return {
    out: { format: 'fp16', shape: [batch, heads, queries, vDim], data },
    lse: {
      format: 'fp32',
      shape: [batch, heads, queries],
      data: Float32Array.from(quantities.lse.values),
    },
  };
}

const sage1: PremiseDeclaration = { ...modelPremises('sageattention'), smoothedLse: 'corrected' };
const declarations: Readonly<Record<string, PremiseDeclaration>> = {
  sageattention: sage1,
  'sageattention2-fp16': premisePresets['sageattention2-fp16'].premises,
  'sageattention2-int4': premisePresets['sageattention2-int4'].premises,
};

/** The faults that only kernels of this declaration can have. */
const ofItself: Readonly<Record<string, readonly string[]>> = {
  'sageattention2-fp16': ['factor-groups-mapped', 'scale-twice', 'amax-of-half'],
  'sageattention2-int4': ['nibbles-swapped', 'integers-truncated'],
};

const causeOf = (
  problem: Problem,
  outputs: { out: Tensor; lse: Tensor | null },
  premises: PremiseDeclaration,
) => {
  const { verdict } = judgeOutputs(problem, outputs, { premises });
  const { diagnosis } = verdict;
  return {
    pass: verdict.pass,
    ids: diagnosis === null ? [] : [diagnosis.id, ...diagnosis.equivalents],
    verdict,
  };
};

describe.each(Object.entries(declarations))('a kernel that declares %s', (name, declared) => {
  const problem = drawn(136, 7);
  it('passes with what it declares', () => {
    const right = outputsOf(quantisedInputs(problem, declared));
    expect(causeOf(problem, right, declared).verdict.findings).toEqual([]);
  });

  const shownBefore =
    name === 'sageattention'
      ? () => false
      : ({ id }: { id: string }) => !ofItself[name].includes(id);
  const faults = quantisationFaults.filter(
    (fault) => (fault.applies?.(declared, problem) ?? true) && !shownBefore(fault),
  );
  inTurn.each(faults.map((fault) => [fault.statement, fault] as const))(
    'fails where %s',
    (_, fault) => {
      const { lseShift } = quantisedInputs(problem, declared);
      const faulty = quantisedInputs(problem, { ...declared, ...fault.declared }, fault.steps);
      const scale = fault.id === 'scale-twice' ? problem.scale * Math.LN2 : faulty.scale;
      const { out } = outputsOf({ ...faulty, scale, ...(lseShift && { lseShift }) });
      const { pass, ids, verdict } = causeOf(problem, { out, lse: null }, declared);
      expect(pass).toBe(false);
      expect(ids, verdict.diagnosis?.sentence).toContain(fault.id);
      expect(ids.length).toBeLessThan(3);
    },
  );

  inTurn.each([
    ['lse-without-smoothing', 0],
    ['lse-smoothing-sign', -1],
    ['lse-smoothing-twice', 2],
  ] as const)('fails by its LSE alone: %s', (id, times) => {
    const own = quantisedInputs(problem, declared);
    const { out, lse } = outputsOf(own);
    const data = (lse.data as Float32Array).map(
      (x, row) => x + (times - 1) * own.lseShift!.values[row],
    );
    const { pass, ids, verdict } = causeOf(problem, { out, lse: { ...lse, data } }, declared);
    expect(pass).toBe(false);
    expect(ids, verdict.diagnosis?.sentence).toEqual([id]);
  });

  it('names an output that is 1 % too large on one head', () => {
    const { out } = outputsOf(quantisedInputs(problem, declared));
    const values = decodeTensor(out).map((x, at) => (at < queries * 64 ? 1.01 * x : x));
    const off = { ...out, data: encodeFromFloat64(formats.fp16, values) };
    const { pass, ids, verdict } = causeOf(problem, { out: off, lse: null }, declared);
    expect(pass).toBe(false);
    expect(ids).toContain('output-scale');
    expect(verdict.diagnosis!.place!.heads!.ranges).toEqual([{ first: 0, last: 0 }]);
  });
});

describe('factors of V', () => {
  it('names those of the next column', () => {
    const declared = premisePresets['sageattention2-fp8'].premises;
    const problem = drawn(192, 9);
    const own = quantisedInputs(problem, declared);
    const [factors] = own.v.scales!.factors;
    const values = factors.values.map((_, at) => factors.values[at - (at % 64) + ((at + 1) % 64)]);
    const v = { ...own.v, scales: { ...own.v.scales!, factors: [{ ...factors, values }] } };
    const { out } = outputsOf({ ...own, v });
    expect(causeOf(problem, { out, lse: null }, declared).ids).toEqual(['descale-of-other-column']);
  });
});

describe('a kernel that declares nothing', () => {
  inTurn.each([
    ['sageattention', /Q and K in int8, a factor for 128 rows of Q and 64 of K, K less its mean/],
    ['sageattention2-fp16', /Q and K in int8, a factor for each thread of a warp, K less its mean/],
    ['sageattention2-int4', /Q and K in int4, a factor for each thread/],
  ])('is told that it quantises as %s does, and fails', (name, words) => {
    const problem = drawn(192, 11);
    const outputs =
      name === 'sageattention'
        ? runKernelModel('sageattention', problem)
        : outputsOf(quantisedInputs(problem, declarations[name]));
    const { verdict } = judgeOutputs(problem, outputs);
    expect(verdict.pass).toBe(false);
    expect(verdict.diagnosis!.id).toBe('quantised-operands');
    expect(verdict.diagnosis!.sentence).toMatch(words);
    expect(verdict.premise!.flags).toBe(`--as ${name}`);
    const strict = judgeOutputs(problem, outputs, { strictPremises: true }).verdict;
    expect(strict.premise).toBeNull();
    expect(strict.sentence).not.toContain('--as');
  });

  it('says how far its quantisation moves the output', () => {
    const problem = drawn(192, 12);
    const outputs = runKernelModel('sageattention', problem);
    const { verdict } = judgeOutputs(problem, outputs, {
      premises: modelPremises('sageattention'),
    });
    expect(verdict.findings).toEqual([]);
    expect(verdict.notes.join()).toMatch(/that quantisation moves the output by 0\.00\d+/);
    const { problem: inner } = quantiseProblem(problem, { operands: null, values: 'fp16' });
    expect(inner.q).toBe(problem.q);
  });
});
