import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { attentionOracle } from '../../oracles/index.js';
import { writeSafetensors } from '../../src/io/index.js';
import type { Problem } from '../../src/problem/index.js';
import { pseudorandom, tensor } from '../setup/problems.js';
import { refusal, runInProcess } from './run-in-process.js';

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-renamed-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const random = pseudorandom(11);
const bf16 = (...shape: number[]) => tensor('bf16', shape, () => random() * 4 - 2);
const problem: Problem = {
  q: bf16(1, 2, 9, 16),
  k: bf16(1, 2, 20, 16),
  v: bf16(1, 2, 20, 16),
  scale: 0.25,
  causal: false,
  window: null,
  softcap: null,
};
const { quantities: exact } = attentionOracle(problem);
const out = tensor('bf16', [1, 2, 9, 16], (i) => exact.out.values[i]!);
const lse = tensor('fp32', [1, 2, 9], (i) => exact.lse.values[i]!);

/** Names that dumps of other programs have for q, k, v, the output and the LSE. */
const dumps: Readonly<Record<string, readonly string[]>> = {
  flash: ['query', 'key', 'value', 'o', 'softmax_lse'],
  output: ['Query', 'Key', 'Value', 'output', 'softmax_lse'],
  transformers: ['query_states', 'key_states', 'value_states', 'attn_output', 'logsumexp'],
  only: ['q', 'k', 'v', 'o', 'softmax_lse'],
  // A word that a shell would take apart.
  spaced: ['queries', 'keys', 'V', 'result', 'LSE'],
};
const pathOf = (name: string) => join(scratch, `${name}.safetensors`);

beforeAll(async () => {
  const { q, k, v } = problem;
  for (const [name, names] of Object.entries(dumps)) {
    const pairs = [q, k, v, out, lse].map((one, i) => [names[i]!, one] as const);
    await writeSafetensors(pathOf(name), Object.fromEntries(pairs));
  }
});

/** The options that a refusal tells to add, as a shell reads them. */
function added(message: string): string[] {
  const told = /: add (.*)$|; add (.*), if /.exec(message);
  const line = told?.[1] ?? told?.[2] ?? '';
  return line.split(' ').map((word) => word.replaceAll("'", ''));
}

describe('a dump with the names of other programs', () => {
  for (const name of Object.keys(dumps))
    it(`is judged by the options that its refusal tells: ${name}`, async () => {
      const options = added(await refusal('audit', pathOf(name)));
      expect(options).toContain('--output');
      expect(options).toContain('--lse');
      const { status, stdout } = await runInProcess('audit', pathOf(name), '--quiet', ...options);
      expect(stdout).toMatch(/^PASS: the output and the LSE stay within/);
      expect(status).toBe(0);
    });

  it('fails where the tensors are exchanged', async () => {
    const names = ['--tensor', 'q=:query', '--tensor', 'k=:value', '--tensor', 'v=:key'];
    const { status, stdout } = await runInProcess(
      ...['audit', pathOf('flash'), ...names, '--output', ':o', '--quiet'],
    );
    expect(stdout).toMatch(/^FAIL/);
    expect(status).toBe(1);
  });

  it('has its bounds by the options that their refusal tells', async () => {
    const options = added(await refusal('bound', pathOf('flash')));
    expect(options).toEqual(['--tensor', 'q=:query', '--tensor', 'k=:key', '--tensor', 'v=:value']);
    const { status } = await runInProcess('bound', pathOf('flash'), '--quiet', ...options);
    expect(status).toBe(0);
  });

  it('is refused where a name is of no tensor, or of another file', async () => {
    expect(await refusal('audit', pathOf('flash'), '--tensor', 'q=:quary')).toMatch(
      /tensor "quary": --tensor names it, and there is none; did you mean query; the file holds "/,
    );
    const other = `q=${pathOf('only')}:q`;
    expect(await refusal('audit', pathOf('flash'), '--tensor', other)).toMatch(
      /is of another file, and a problem is in one; give q=:<tensor>/,
    );
  });
});
