import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTensorFile, writeRawTensors } from '../../src/io/index.js';
import type { RecurrentReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-audit-recurrent-launch-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const at = (...names: string[]) => join(scratch, ...names);
const recorded = fileURLToPath(
  new URL('../../examples/linear-attention/recorded/', import.meta.url),
);

/** A launch file as JSON. */
interface LaunchJson {
  readonly grid: readonly unknown[];
  readonly parameters: readonly Readonly<Record<string, unknown>>[];
  readonly outputs: readonly string[];
  readonly buffers?: readonly { readonly name: string }[];
  readonly contract?: object;
}

const launchIn = (folder: string) =>
  JSON.parse(readFileSync(join(recorded, folder, 'launch.json'), 'utf8')) as LaunchJson;

/** A problem's file: tensors of a recorded launch by the names of problem files. */
async function problemFrom(
  folder: string,
  names: Readonly<Record<string, string>>,
  path: string,
): Promise<void> {
  const file = await openTensorFile(join(recorded, folder, 'tensors.safetensors'));
  try {
    const tensors = [];
    for (const [name, own] of Object.entries(names)) {
      const { dtype, shape } = file.entries.get(own)!;
      tensors.push({ name, dtype, shape, bytes: await file.readBytes(own) });
    }
    await writeRawTensors(path, tensors, { family: 'gated-delta', scale: String(32 ** -0.5) });
  } finally {
    await file.close();
  }
}

async function audited(problem: string, launch: string) {
  const { status, stdout } = await runInProcess(
    ...['audit', problem, '--launch', launch, '--json', '-'],
  );
  const report = JSON.parse(stdout) as RecurrentReport;
  await validateFileReport(report);
  return { status, report };
}

const recurrent = 'fused-recurrent-sm_90';
/** The template of the recurrent kernel, with changes. */
function template(changes: object = {}): LaunchJson {
  const text = readFileSync(join(recorded, recurrent, 'template.json'), 'utf8');
  return { ...(JSON.parse(text) as LaunchJson), ...changes };
}

/** Writes a launch file and PTX into a folder of their own. */
function written(name: string, launch: object, ptx: string): string {
  mkdirSync(at(name), { recursive: true });
  writeFileSync(at(name, 'kernel.ptx'), ptx);
  writeFileSync(at(name, 'launch.json'), JSON.stringify(launch));
  return at(name, 'launch.json');
}

const ptx = readFileSync(join(recorded, recurrent, 'kernel.ptx'), 'utf8');
const inputs = { q: 'q', k: 'k', v: 'v', g: 'g', beta: 'beta', cu_seqlens: 'cu_seqlens' };
const problem = at('problem.safetensors');
beforeAll(async () => {
  const names = { ...inputs, initial_state: 'h0' };
  await problemFrom(recurrent, names, problem);
});

describe('an audit of a compiled kernel of linear attention', () => {
  it('runs it on the problem, and judges what it writes', async () => {
    const { status, report } = await audited(problem, written('right', template(), ptx));
    expect(report.verdict.sentence).toMatch(/^PASS: the output and the final state stay/);
    expect(status).toBe(0);
    expect(report.quantities.map(({ name }) => name)).toEqual(['out', 'final_state']);
    expect(report.problem.sequences).toEqual([7, 5]);
    expect(report.inputs.command).toContain('--launch');
    expect(report.warnings).toEqual([]);
  });

  it('fails one that takes another scale, and says so', async () => {
    const launch = template();
    const parameters = launch.parameters.map((one) => ('f32' in one ? { f32: '2 * scale' } : one));
    const { status, report } = await audited(
      problem,
      written('scaled', { ...launch, parameters }, ptx),
    );
    expect(status).toBe(1);
    expect(report.verdict.sentence).toMatch(/^FAIL: /);
    expect(report.verdict.findings.map(({ quantity }) => quantity)).toContain('out');
    expect(report.verdict.findings.map(({ quantity }) => quantity)).not.toContain('final_state');
  });

  it('fails one that leaves the last head unwritten', async () => {
    const launch = template({ grid: ['ceil(valueDim / 8) * sequences * valueHeads - 1', 1, 1] });
    const { status, report } = await audited(problem, written('short', launch, ptx));
    expect(status).toBe(1);
    expect(report.verdict.findings[0].test).toBe('non-finite');
  });

  it('fails one with a race, whatever its numbers are', async () => {
    // Two warps in the place of one: the second reads the state that the first writes.
    const { parameters: all } = template();
    const parameters = all.map((one) => (one.tensor === 'initial_state' ? { tensor: 'ht' } : one));
    const launch = template({ grid: [8, 2, 1], parameters });
    const { status, report } = await audited(problem, written('twice', launch, ptx));
    expect(status).toBe(1);
    expect(report.verdict.findings[0]).toMatchObject({ quantity: null, test: 'machine' });
    expect(report.verdict.sentence).toMatch(
      /^FAIL: the compiled kernel .*race.*its numbers alone: /,
    );
  });

  it('is not judged where the template declines the problem', async () => {
    const launch = template({ requires: ['tokens > 64'] });
    const { status, report } = await audited(problem, written('declines', launch, ptx));
    expect(status).toBe(1);
    expect(report.verdict.sentence).toMatch(
      /^NOT JUDGED: .* declines the problem: it requires tokens > 64/,
    );
    expect(report.quantities).toEqual([]);
  });

  it('is no template for run --problem, which says so', async () => {
    const launch = written('run', template(), ptx);
    expect(await refusal('run', launch, '--problem', problem)).toMatch(
      /is of linear attention \(gated-delta\); flashproof audit --launch takes a template/,
    );
  });

  it('is refused in a line where nothing is given as a result', async () => {
    const launch = written('nothing', template({ outputs: ['o', 'ht'] }), ptx);
    expect(await refusal('audit', problem, '--launch', launch)).toMatch(
      /no output is given as "out" or "final_state"; write \{"name": "o", "as": "out"/,
    );
    const lse = written('lse', template({ outputs: [{ name: 'o', as: 'lse' }] }), ptx);
    expect(await refusal('audit', problem, '--launch', lse)).toMatch(/no output is given as "out"/);
  });
});

describe('a chain of compiled kernels of linear attention', () => {
  const chunked = 'chunk-sm_90';
  const steps = readdirSync(join(recorded, chunked)).sort();
  let whole = '';

  /** The problem of the chain, whose tensors are spread over the files of its launches. */
  beforeAll(async () => {
    const tensors = new Map<string, Parameters<typeof writeRawTensors>[1][number]>();
    for (const step of steps) {
      const file = await openTensorFile(join(recorded, chunked, step, 'tensors.safetensors'));
      try {
        for (const [name, { dtype, shape }] of file.entries)
          tensors.set(name, { name, dtype, shape, bytes: await file.readBytes(name) });
      } finally {
        await file.close();
      }
    }
    whole = at('chain.safetensors');
    const own = ['q', 'k', 'v', 'g', 'beta', 'initial_state', 'cu_seqlens'];
    const plan = ['chunk_indices', 'chunk_offsets'];
    const kept = [...tensors.values()].filter(({ name }) => [...own, ...plan].includes(name));
    await writeRawTensors(whole, kept, { family: 'gated-delta', scale: String(32 ** -0.5) });
  });

  /** The five launches, each followed by the next, with the results that they leave; `leftOut` does nothing. */
  function writeChain(name: string, leftOut?: number): string {
    const results: Readonly<Record<string, object>> = {
      ht: { name: 'ht', as: 'final_state', format: 'fp32' },
      'o.4': { name: 'o.4', as: 'out' },
    };
    const chain = steps
      .map((step, i) => ({ step, launch: launchIn(join(chunked, step)), i }))
      .filter(({ i }) => i !== leftOut);
    const buffers = steps.flatMap((step) => launchIn(join(chunked, step)).buffers ?? []);
    chain.forEach(({ step, launch, i }, at) => {
      const { outputs, ...rest } = launch;
      const next = chain.at(at + 1);
      const file = {
        ...rest,
        contract: undefined,
        // What no launch writes any more is found as it was before.
        buffers: at === 0 ? buffers.filter((one) => results[one.name] === undefined) : [],
        outputs: outputs.flatMap((one) => {
          const isBuffer = buffers.some((buffer) => buffer.name === one);
          return results[one] ?? (isBuffer ? one : []);
        }),
        ...(next && { next: `../${name}-${next.i}/launch.json` }),
      };
      const text = readFileSync(join(recorded, chunked, step, 'kernel.ptx'), 'utf8');
      written(`${name}-${i}`, file, text);
    });
    return at(`${name}-${chain[0].i}`, 'launch.json');
  }

  inTurn('is judged as a whole', async () => {
    const { status, report } = await audited(whole, writeChain('chain'));
    expect(report.verdict.sentence).toMatch(/^PASS: the output and the final state stay/);
    expect(status).toBe(0);
    expect(report.warnings).toEqual([]);
  });

  inTurn('fails without its inverse', async () => {
    const { status, report } = await audited(whole, writeChain('without', 1));
    expect(status).toBe(1);
    expect(report.verdict.status).toBe('FAIL');
  });
});
