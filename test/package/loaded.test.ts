import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { builtDist } from '../setup/built-dist.js';

interface Coverage {
  readonly result: readonly { readonly url: string }[];
}

const folder = mkdtempSync(join(tmpdir(), 'flashproof-loaded-'));
beforeAll(async () => void (await builtDist()), 180_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The packages of others that a command loads, each with what is below it. */
function packagesOf(...words: string[]): string[] {
  const coverage = mkdtempSync(join(folder, 'coverage-'));
  const environment = { ...process.env, NODE_V8_COVERAGE: coverage };
  const { status, stderr } = spawnSync(process.execPath, ['dist/src/cli/main.js', ...words], {
    env: environment,
    encoding: 'utf8',
  });
  expect(status, stderr).toBe(0);
  const urls = readdirSync(coverage).flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(coverage, name), 'utf8')) as Coverage;
    return result.map(({ url }) => url);
  });
  expect(urls.some((url) => url.endsWith('dist/src/cli/main.js'))).toBe(true);
  return urls.flatMap((url) => /node_modules\/(.*)/.exec(url)?.[1] ?? []);
}

/** What compiles schemas, draws problems and starts threads: a small command is over sooner than these are loaded. */
const slow = /^(ajv\/dist\/(core|2020)|fast-check|piscina)/;

describe('a command loads what it runs', () => {
  it('when it audits a file on one thread', () => {
    const file = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';
    const words = ['audit', file, '--output', ':fa4.out', '--threads', '1', '--quiet'];
    expect(packagesOf(...words).filter((path) => slow.test(path))).toEqual([]);
  });

  it('when it runs a compiled kernel', () => {
    const words = ['run', 'examples/triton/recorded/sm_90/launch.json', '--quiet'];
    expect(packagesOf(...words).filter((path) => slow.test(path))).toEqual([]);
  });
});
