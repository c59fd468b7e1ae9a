import { mkdtempSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Tensor } from '../../src/formats/index.js';
import { openTensorFile, writeRawTensors } from '../../src/io/index.js';
import { recurrentQuantities } from '../../src/problem/index.js';
import type { AuditsReport, RecurrentReport } from '../../src/report/json/index.js';
import { validateFileReport } from '../../src/report/validation/index.js';
import { unpackRecurrence } from '../fixtures/recurrent-captures.js';
import { refusal, runInProcess } from './run-in-process.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'flashproof-audit-recurrent-'));
const at = (name: string) => join(folder, name);
const packed = 'simple-gla-packed.safetensors';
const stated = 'gated-delta-state.safetensors';
const audit = (...args: string[]) => runInProcess('audit', ...args);
const forward = ['--output', ':recurrent.out', '--final-state', ':recurrent.final_state'];
const written = async (name: string) =>
  JSON.parse(await readFile(at(name), 'utf8')) as RecurrentReport;

/** A capture with some of its tensors made anew, and other metadata. */
async function remade(
  from: string,
  name: string,
  change: (tensor: Tensor, name: string) => Tensor,
  notes: Readonly<Record<string, string>> = {},
  renamed: Readonly<Record<string, string>> = {},
): Promise<string> {
  const file = await openTensorFile(at(from));
  try {
    const tensors = [];
    for (const [tensor, { dtype, shape }] of file.entries) {
      const isInteger = dtype === 'I64';
      const made = isInteger ? null : change(await file.read(tensor), tensor);
      const bytes = made === null ? await file.readBytes(tensor) : new Uint8Array(made.data.buffer);
      tensors.push({ name: renamed[tensor] ?? tensor, dtype, shape: made?.shape ?? shape, bytes });
    }
    await writeRawTensors(at(name), tensors, { ...file.metadata, ...notes });
  } finally {
    await file.close();
  }
  return at(name);
}

beforeAll(async () => {
  for (const file of [packed, stated]) await writeFile(at(file), unpackRecurrence(file));
});
afterAll(() => rm(folder, { recursive: true }));

describe('an audit of a captured kernel of linear attention', () => {
  inTurn(
    'passes all results under a prefix, with gradients, and writes documents that say the same',
    async () => {
      const { status, stdout } = await audit(
        ...[at(stated), '--results', 'chunk', '--json', at('out.json')],
        ...['--junit', at('out.xml'), '--html', at('out.html')],
      );
      expect(status).toBe(0);
      const report = await written('out.json');
      await validateFileReport(report);
      expect(report.kind).toBe('recurrent-audit');
      const names = report.quantities.map(({ name }) => name);
      // A gated delta rule with a state and a gradient of the output has every quantity but Mamba-2's.
      expect(names).toEqual(
        Object.keys(recurrentQuantities).filter((name) => !/^d(dt|A|D)/.test(name)),
      );
      expect(report.inputs.outputs.map(({ tensor }) => tensor)).toEqual([
        ...names.map((name) => `chunk.${name}`),
        'dout',
      ]);
      for (const { label, elements } of report.quantities)
        expect(stdout).toMatch(new RegExp(`^  ${label} +${String(elements.elements)} +0 `, 'm'));
      const junit = await readFile(at('out.xml'), 'utf8');
      const html = await readFile(at('out.html'), 'utf8');
      expect(junit).toContain('failures="0"');
      for (const { label } of report.quantities) {
        expect(junit).toContain(`name="${label} element bound"`);
        expect(html).toContain(label);
      }
    },
  );

  inTurn('judges what is named alone, of packed sequences too', async () => {
    const { status } = await audit(at(packed), ...forward, '--json', at('named.json'), '-q');
    expect(status).toBe(0);
    const { quantities, problem } = await written('named.json');
    expect(quantities.map(({ name }) => name)).toEqual(['out', 'final_state']);
    expect(problem.sequences).toEqual([37, 64, 59]);
  });

  inTurn('fails where an element is off, with its cause in every document', async () => {
    const file = await remade(packed, 'wrong.safetensors', (tensor, name) => {
      if (name !== 'recurrent.out') return tensor;
      const data = tensor.data.slice();
      data[1000] ^= 0x0400;
      return { ...tensor, data };
    });
    const { status, stdout } = await audit(file, ...forward, '--json', at('wrong.json'));
    expect(status).toBe(1);
    expect(stdout).toMatch(/^FAIL: /);
    const { verdict } = await written('wrong.json');
    expect(verdict.findings.map(({ test }) => test)).toContain('element-bound');
    const junit = await audit(file, ...forward, '--junit', '-');
    expect(junit.stdout).toMatch(/name="output element bound"[^>]*>\s*<failure/);
  });
});

describe('the lie of the tensors of a recurrence', () => {
  inTurn('is the same problem with heads before tokens, and with states value first', async () => {
    const turned = await remade(
      stated,
      'turned.safetensors',
      (tensor, name) => {
        const [first, rows, columns, ...rest] = tensor.shape;
        const width = rest.reduce((product, size) => product * size, 1);
        const isState = name.endsWith('state');
        const data = tensor.data.slice();
        const [outer, a, b, inner] = isState
          ? [first * rows, columns, width, 1]
          : [first, rows, columns, width];
        for (let o = 0; o < outer; o++)
          for (let i = 0; i < a; i++)
            for (let j = 0; j < b; j++)
              for (let w = 0; w < inner; w++)
                data[((o * b + j) * a + i) * inner + w] =
                  tensor.data[((o * a + i) * b + j) * inner + w];
        const shape = isState ? [first, rows, width, columns] : [first, columns, rows, ...rest];
        return { ...tensor, shape, data };
      },
      { layout: 'bhtd', state_layout: 'vk' },
    );
    await audit(at(stated), ...forward, '--json', at('a.json'), '-q');
    await audit(turned, ...forward, '--json', at('b.json'), '-q');
    const [a, b] = [await written('a.json'), await written('b.json')];
    expect(b.quantities).toEqual(a.quantities);
    expect(b.problem).toEqual(a.problem);
  });
});

describe('requests on linear attention that cannot be carried out', () => {
  const refused = async (...args: string[]) => refusal('audit', at(packed), ...args);
  it.each([
    [
      ['--results', 'nothing'],
      /has no result under --results "nothing".*there are chunk, recurrent/,
    ],
    [[], /has no tensor "out".* to judge; give --results chunk or --results recurrent/],
    [['--family', 'mamba'], /--family is "mamba"; give one of linear, retention, /],
    [['--family', 'retention', ...forward], /retention has no g; leave it out/],
    [['--lse', ':lse', ...forward], /--lse is of softmax attention, and this is simple-gla/],
    [['--causal', ...forward], /--causal is of softmax attention/],
    [
      ['--kernel', 'fa4'],
      /no kernel model of linear attention "fa4"; there are naive-recurrent, chunked/,
    ],
    [['--exec', 'true', '--lse-base', '2'], /--lse-base is of softmax attention/],
    [
      ['--as', 'fa4', ...forward],
      /--as is "fa4"; for linear attention give recurrent, chunked, fla/,
    ],
    [['--premise', 'scores=bf16', ...forward], /the premises of linear attention are form, chunk/],
    [
      ['--premise', 'chunk=0', ...forward],
      /--premise has chunk "0"; give a whole number of tokens/,
    ],
    [['--layout', 'tbhd', ...forward], /--layout is "tbhd"; give .*bhtd or bthd/],
    [
      ['--output', ':recurrent.final_state'],
      /has shape \[3, 2, 64, 64\].*asks for \[1, 160, 2, 64\]/,
    ],
    [['--dbeta', ':chunk.dq'], /there is dbeta to judge, which simple-gla here has not/],
    [['--state-layout', 'kk', ...forward], /--state-layout is "kk"; give kv or vk/],
  ] as const)('%j', async (args, line) => {
    const message = await refused(...args);
    expect(message).toMatch(line);
    expect(message).not.toContain('\n');
  });

  it.each([
    [
      { softcap: '30' },
      /metadata softcap is "30", but linear attention has no softcap; leave it out with --ignore softcap$/,
    ],
    [{ window_size: '64,0' }, /window_size is "64,0", but linear attention has no window/],
    [{ is_causal: 'false' }, /is_causal is "false", but linear attention is causal/],
    [{ dropout_p: '0.1' }, /dropout_p is "0.1", but linear attention has no dropout/],
  ])('notes of softmax attention in its file: %j', async (notes, line) => {
    const file = await remade(packed, 'noted.safetensors', (tensor) => tensor, notes);
    expect(await refusal('audit', file, ...forward)).toMatch(line);
  });

  inTurn(
    'accepts notes of softmax attention that say nothing else, and those to be ignored',
    async () => {
      const notes = { softcap: '0', window: 'none', causal: 'true', dropout_p: '0.0' };
      const file = await remade(packed, 'noted.safetensors', (tensor) => tensor, notes);
      expect((await audit(file, ...forward)).status).toBe(0);
      const capped = await remade(packed, 'capped.safetensors', (tensor) => tensor, {
        softcap: '3',
      });
      expect((await audit(capped, ...forward, '--ignore', 'softcap')).status).toBe(0);
    },
  );

  it('names an option of linear attention beside softmax attention', async () => {
    const file = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
    expect(await refusal('audit', file, '--results', 'fa4')).toMatch(
      /--results is of linear attention, and the file's metadata has no family; give --family/,
    );
  });
});

describe('several files', () => {
  inTurn('have rows of both kinds in one table', async () => {
    const softmax = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
    const linear = await remade(
      packed,
      'linear.safetensors',
      (tensor) => tensor,
      {},
      {
        'recurrent.out': 'fa4.out',
      },
    );
    const output = ['--output', ':fa4.out'];
    const { status, stdout } = await audit(softmax, linear, ...output, '--json', at('both.json'));
    expect(status).toBe(0);
    expect(stdout.match(/^PASS .* output /gm)).toHaveLength(2);
    // The column is the largest absolute error of an output, which is not known of linear attention.
    expect(stdout).toMatch(/^PASS .* output +– /m);
    expect(stdout).toMatch(/errors\s+of\s+linear\s+attention\s+are\s+not\s+profiled/);
    const { files } = JSON.parse(await readFile(at('both.json'), 'utf8')) as AuditsReport;
    expect(files.map(({ report }) => report?.kind)).toEqual(['audit', 'recurrent-audit']);
  });
});
