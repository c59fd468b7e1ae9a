import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { beforeAll, expect, it } from 'vitest';
import { runKernelModel } from '../../kernels/index.js';
import { openTensorFile, readProblem, writeSafetensors } from '../../src/io/index.js';
import { temporaryFolder } from '../io/temporary-folder.js';
import { builtDist } from '../setup/built-dist.js';

const folder = temporaryFolder();

// A build may take longer than a test.
beforeAll(async () => void (await builtDist()));

const fixture = 'fixtures/attention/12-tiny-128x256-d64-bf16.safetensors';

interface Answer {
  readonly id: unknown;
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** What the server answers to lines, and the exit status with which it ends after them. */
async function serve(lines: readonly string[]) {
  const main = join(await builtDist(), 'src/cli/main.js');
  const server = spawn(process.execPath, [main, 'serve'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const ended = new Promise<number | null>((resolve) => server.on('close', resolve));
  server.stdin.end(lines.map((line) => `${line}\n`).join(''));
  const answers: Answer[] = [];
  for await (const line of createInterface({ input: server.stdout }))
    answers.push(JSON.parse(line) as Answer);
  return { answers, status: await ended };
}

const request = (id: number | string, ...args: readonly string[]) => JSON.stringify({ id, args });

it('carries out one request after the other, each as a process of its own would', async () => {
  const { answers, status } = await serve([
    request(1, 'bound', fixture, '--threads', '1', '--json', '-'),
    request('b', 'bound', 'nothing.safetensors'),
    request(3, 'nothing'),
    request(4, '--version'),
    request(5, 'bound', fixture, '--threads', '1', '--quiet'),
  ]);
  expect(status).toBe(0);
  expect(answers.map(({ id, status: one }) => [id, one])).toEqual([
    [1, 0],
    ['b', 2],
    [3, 2],
    [4, 0],
    [5, 0],
  ]);
  expect(JSON.parse(answers[0].stdout)).toMatchObject({ kind: 'bound' });
  expect(answers[1].stderr).toMatch(/^flashproof: nothing\.safetensors.*\n$/);
  expect(answers[2].stderr).toContain("unknown command 'nothing'");
  expect(answers[4]).toMatchObject({ stdout: '', stderr: '' });
});

it('forgets a request’s options before the next, those that may be repeated too', async () => {
  const bound = ['bound', fixture, '--threads', '1'];
  const { answers } = await serve([
    request(1, ...bound, '--json', '-', '--quiet', '--premise', 'weights=fp16'),
    request(2, ...bound),
    request(3, ...bound, '--json', '-'),
    request(4, ...bound, '--json', '-', '--premise', 'weights=fp16'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([0, 0, 0, 0]);
  expect(JSON.parse(answers[0].stdout)).toMatchObject({ kind: 'bound' });
  // As text, and not quietly.
  expect(() => JSON.parse(answers[1].stdout) as unknown).toThrow();
  expect(answers[1].stdout).toMatch(/\S/);
  const [premised, , plain, again] = answers.map(
    ({ stdout }) => /"techniques".*/s.exec(stdout)?.[0],
  );
  expect(plain).toBeDefined();
  expect(again).toEqual(premised);
  expect(plain).not.toEqual(premised);
});

it('answers what is no request, and goes on', async () => {
  const { answers, status } = await serve([
    'hello',
    '[]',
    '{"id":7}',
    '{"id":8,"args":"audit"}',
    '{"id":9,"args":["serve"]}',
    request(10, '--version'),
  ]);
  expect(status).toBe(0);
  expect(answers.map(({ id, status: one }) => [id, one])).toEqual([
    ...[null, null, 7, 8, 9].map((id) => [id, 2]),
    [10, 0],
  ]);
  for (const { stderr } of answers.slice(0, 5)) expect(stderr).toMatch(/^flashproof: [^\n]+\n$/);
});

it('tells no hint to a request with --strict-premises, and one to the next without', async () => {
  const source = await openTensorFile('fixtures/attention/09-normal-200x300-d64-bf16.safetensors');
  const problem = await readProblem(source);
  await source.close();
  const { q, k, v } = problem;
  const { out, lse } = runKernelModel('naive-input', problem);
  const path = folder.at('eager.safetensors');
  await writeSafetensors(path, { q, k, v, out, lse: lse! }, { premises: 'eager' });
  const { answers } = await serve([
    request(1, 'audit', path, '--as', 'fused', '--strict-premises', '--quiet'),
    request(2, 'audit', path, '--as', 'fused', '--quiet'),
    request(3, 'audit', path, '--strict-premises', '--quiet'),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([1, 1, 1]);
  const hints = answers.map(({ stdout }) => stdout.includes('would pass'));
  expect(hints).toEqual([false, true, false]);
});
