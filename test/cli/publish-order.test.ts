import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { createProgram } from '../../src/cli/program.js';
import { publishConformance } from '../../src/cli/conform/run.js';
import type { Conformance } from '../../src/conform/index.js';
import { publishProfile } from '../../src/cli/profile/run.js';
import { techniqueNamed } from '../../src/profile/index.js';
import { RequestError } from '../../src/request-error.js';
import { turns } from '../setup/turns.js';

const inTurn = turns(import.meta.url);

const scratch = mkdtempSync(join(tmpdir(), 'flashproof-order-'));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
afterEach(() => vi.unstubAllEnvs());

const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
const judged = [fixture, '--output', ':torch_cudnn.out', '--no-techniques'];

/** What was printed before an action was refused, and what it was refused with. */
async function refused(act: () => Promise<unknown>): Promise<{ stdout: string; message: string }> {
  let stdout = '';
  const spy = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    stdout += String(text);
    return true;
  });
  const before = process.exitCode;
  try {
    const error = await act().then(
      () => null,
      (error: unknown) => error,
    );
    expect(error).toBeInstanceOf(RequestError);
    return { stdout, message: (error as RequestError).message };
  } finally {
    process.exitCode = before;
    spy.mockRestore();
  }
}

const command = (...words: readonly string[]) => {
  const program = createProgram((error) => {
    throw error;
  });
  return () => program.parseAsync(words, { from: 'user' });
};

/** A file in a folder that does not exist. */
const nowhere = join(scratch, 'no', 'report');

describe('what was found is printed though a file cannot be written:', () => {
  inTurn.each([
    ['audit --json', /^PASS: /, ['audit', ...judged, '--json', nowhere]],
    ['audit --junit', /^PASS: /, ['audit', ...judged, '--junit', nowhere, '--quiet']],
    ['audit --html', /^PASS: /, ['audit', ...judged, '--html', nowhere, '--quiet']],
    ['bound', /^Techniques|^Problem|^ *\w/, ['bound', fixture, '--json', nowhere]],
    [
      'emulate',
      /^naive-fp32: out /,
      ['emulate', 'naive-fp32', fixture, '--threads', '1', '--json', nowhere],
    ],
  ])('%s', async (_, text, words) => {
    const { stdout, message } = await refused(command(...words));
    expect(stdout).toMatch(text);
    expect(message).toContain('cannot be written: its folder');
  });

  it('conform', async () => {
    const silicon = { folder: 'x', gpu: null, capability: null, driver: null, captured: null };
    const conformance: Conformance = {
      pass: true,
      exhaustive: false,
      seed: '0',
      silicon,
      instructions: [],
      notCaptured: [],
    };
    const publish = () => publishConformance(conformance, 1, { json: nowhere, quiet: true });
    expect((await refused(publish)).stdout).toMatch(/^PASS: /);
  });

  it('profile', async () => {
    const profile = await techniqueNamed('rcp').run({ range: { from: 1, to: 1.0001 } });
    const provenance = { range: {}, architecture: 'sm_90', seconds: 1 };
    const publish = () => publishProfile(profile, provenance, { json: nowhere });
    expect((await refused(publish)).stdout).toContain('rcp.approx.ftz.f32');
  });
});

describe('a report on standard output is nothing else', () => {
  inTurn('and comes although another file cannot be written', async () => {
    const words = ['audit', ...judged, '--json', '-', '--junit', nowhere];
    const { stdout } = await refused(command(...words));
    expect(JSON.parse(stdout)).toMatchObject({ kind: 'audit', verdict: { pass: true } });
  });
});

describe('a live kernel without a place for its files', () => {
  it('is refused by a line that names TMPDIR', async () => {
    vi.stubEnv('TMPDIR', join(scratch, 'none'));
    const { stdout, message } = await refused(command('audit', fixture, '--exec', 'true'));
    expect(stdout).toBe('');
    expect(message).toMatch(/none: no temporary folder can be made in it \(ENOENT\); set TMPDIR /);
    expect(existsSync(join(scratch, 'none'))).toBe(false);
  });
});
