/**
 * Mutants of what kernels compute: a certificate refutes each that changes a real value of an output, and certifies each that does
 * not. `npx vitest run test/meaning/mutants` runs all and prints their table (docs/reference/certificates.md).
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, it } from 'vitest';
import { sampled } from '../../setup/effort.js';
import { turns } from '../../setup/turns.js';
import { type Judged, judgeMutants } from './judge-mutants.js';
import {
  auditOfGradients,
  auditOfOutputs,
  auditOfRecurrence,
  semanticJudge,
} from './judge-semantic.js';
import { type MutantKernel, mutantKernels, writeKernel } from './mutant-kernels.js';
import { isOverlooked, isWronged, type JudgedRow, mutantTable } from './mutant-table.js';
import type { SemanticMutant } from './semantic-mutants.js';

const problemSeed = 5;

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-mutants-'));
const all: JudgedRow[] = [];
const ofBackward: JudgedRow[] = [];
afterAll(() => {
  rmSync(scratch, { recursive: true });
  for (const rows of [all, ofBackward, ofRecurrence])
    if (rows.length > 0) process.stdout.write(`${mutantTable(rows)}\n`);
});

const ofRecurrence: JudgedRow[] = [];

type Choose = (mutants: readonly SemanticMutant[]) => readonly SemanticMutant[];

async function judgeKernel(kernel: MutantKernel, choose: Choose): Promise<readonly Judged[]> {
  const { template, problem, posed } = await writeKernel(scratch, kernel, problemSeed);
  const audit = auditOfOutputs(posed);
  const mutant = join(scratch, 'mutant.ptx');
  const judge = await semanticJudge({ launch: template, problem }, audit, mutant);
  return judgeMutants(kernel.name, judge, choose);
}

/** Of the backward in examples/triton, with its own tensors. */
async function judgeBackward(name: string, choose: Choose): Promise<readonly Judged[]> {
  const file = new URL(`../../../examples/triton/recorded/${name}/launch.json`, import.meta.url);
  const launch = fileURLToPath(file);
  const judge = await semanticJudge({ launch }, auditOfGradients(), join(scratch, 'backward.ptx'));
  return judgeMutants(`triton-${name}`, judge, choose);
}

/** Of the recurrence in examples/linear-attention, whose outputs pass where bits are within what they may be off by. */
async function judgeRecurrence(choose: Choose): Promise<readonly Judged[]> {
  const folder = '../../../examples/linear-attention/recorded/fused-recurrent-sm_90/';
  const launch = fileURLToPath(new URL(`${folder}launch.json`, import.meta.url));
  const audit = await auditOfRecurrence(launch);
  const judge = await semanticJudge({ launch }, audit, join(scratch, 'recurrence.ptx'));
  return judgeMutants('fla-fused-recurrent', judge, choose);
}

const quick = mutantKernels.find(({ name }) => name === 'triton-wgmma-d64-tails-causal')!;

const inTurn = turns(import.meta.url);
/** For all mutants of a kernel. */
const inLongTurn = turns(import.meta.url, { areMinutes: true });

it('refutes a dozen mutants that change a real value, and certifies those that do not', async () => {
  const judged = await judgeKernel(quick, (mutants) => sampled(mutants, 12));
  expect(judged.filter(isOverlooked)).toEqual([]);
  expect(judged.filter(isWronged)).toEqual([]);
});

inTurn(
  'refutes a dozen mutants of a backward that change a real value, and certifies those that do not',
  async () => {
    const judged = await judgeBackward('backward-sm_90', (mutants) => sampled(mutants, 12));
    expect(judged.filter(isOverlooked)).toEqual([]);
    expect(judged.filter(isWronged)).toEqual([]);
  },
  120_000,
);

it('refutes a dozen mutants of a recurrence that change a real value, and certifies those that do not', async () => {
  const judged = await judgeRecurrence((mutants) => sampled(mutants, 12));
  expect(judged.filter(isOverlooked)).toEqual([]);
  expect(judged.filter(isWronged)).toEqual([]);
});

for (const kernel of mutantKernels)
  inLongTurn(`refutes mutants of ${kernel.name}`, { timeout: 1_200_000 }, async () => {
    const judged = await judgeKernel(kernel, (mutants) => mutants);
    all.push(...judged);
    expect(judged.filter(isOverlooked)).toEqual([]);
    expect(judged.filter(isWronged)).toEqual([]);
  });

inLongTurn('refutes mutants of backwards', { timeout: 1_200_000 }, async () => {
  for (const name of ['backward-sm_90', 'backward-sm_90-atomics'])
    ofBackward.push(...(await judgeBackward(name, (mutants) => mutants)));
  expect(ofBackward.filter(isOverlooked)).toEqual([]);
  expect(ofBackward.filter(isWronged)).toEqual([]);
});

inLongTurn('refutes mutants of a recurrence', { timeout: 1_200_000 }, async () => {
  ofRecurrence.push(...(await judgeRecurrence((mutants) => mutants)));
  expect(ofRecurrence.filter(isOverlooked)).toEqual([]);
  expect(ofRecurrence.filter(isWronged)).toEqual([]);
});
