import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { writeSafetensors } from '../io/index.js';
import { writeAudited } from './audited-problem.js';
import { median, type Benchmark } from './benchmark.js';
import { measureCommand } from './command-process.js';
import { normalValues, type ProblemSize } from './normal-problem.js';

/** Next to nothing: what is measured is what every command costs, whatever its size is. */
const leastSize: ProblemSize = { heads: 1, seqlen: 64, dim: 16 };
/** What a test asserts again and again. */
const testSize: ProblemSize = { heads: 1, seqlen: 256, dim: 64 };
/** Requests to a server before those that are measured, in which its code is compiled. */
const warmUp = 20;
const measuredRequests = 11;

const kernel = `.version 8.7
.target sm_90a
.address_size 64
.visible .entry double_all(.param .u64 x, .param .u64 y) {
  .reg .b32 %r<2>; .reg .b64 %rd<6>; .reg .f32 %f<3>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f2, %f1, %f1;
  st.global.f32 [%rd5], %f2;
  ret;
}
`;

const workFolder = () => mkdtemp(join(tmpdir(), 'flashproof-bench-'));

/** An audit, and a run of a compiled kernel of one warp. */
function commandBenchmark(commandLine: string): Benchmark {
  const time = { unit: 's', better: 'lower' } as const;
  return {
    quantities: [
      { ...time, name: 'audit of O of [1, 64, 16] bf16, one thread: time', target: 0.5 },
      { ...time, name: 'run of a compiled kernel of one warp: time', target: 0.35 },
    ],
    prepare: async () => {
      const folder = await workFolder();
      const { path } = await writeAudited(folder, leastSize);
      const data = Float32Array.from(normalValues(32, 1));
      const tensor = { format: 'fp32', shape: [data.length], data } as const;
      await writeSafetensors(join(folder, 'tensors.safetensors'), { x: tensor, y: tensor });
      await writeFile(join(folder, 'kernel.ptx'), kernel);
      const launch = join(folder, 'launch.json');
      const described = {
        entry: 'double_all',
        grid: [1, 1, 1],
        block: [32, 1, 1],
        parameters: [{ tensor: 'x' }, { tensor: 'y' }],
        outputs: ['y'],
      };
      await writeFile(launch, JSON.stringify(described));
      return {
        measure: async () => [
          (await measureCommand(commandLine, ['audit', path, '--threads', '1']))[0],
          (await measureCommand(commandLine, ['run', launch]))[0],
        ],
        dispose: () => rm(folder, { recursive: true, force: true }),
      };
    },
  };
}

/** Seconds that requests to a new server take, one after the other; the first with the start. */
async function measureServer(
  commandLine: string,
  words: readonly string[],
  requests: number,
): Promise<readonly number[]> {
  let start = performance.now();
  const server = spawn(process.execPath, [commandLine, 'serve'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const ask = () => server.stdin.write(`${JSON.stringify({ id: 0, args: words })}\n`);
  const seconds: number[] = [];
  ask();
  for await (const line of createInterface({ input: server.stdout })) {
    const { status, stderr } = JSON.parse(line) as { status: number; stderr: string };
    if (status !== 0) throw new Error(`a request ended with status ${status}: ${stderr}`);
    seconds.push((performance.now() - start) / 1000);
    if (seconds.length === requests) server.stdin.end();
    else {
      start = performance.now();
      ask();
    }
  }
  return seconds;
}

/** What an assertion of a test costs that asks a server, as the Python package does for arrays of NumPy. */
function serverBenchmark(commandLine: string): Benchmark {
  const time = { unit: 's', better: 'lower' } as const;
  return {
    quantities: [
      { ...time, name: 'serve: first audit of O of [1, 256, 64] bf16: time', target: 0.5 },
      { ...time, name: 'serve: later audit of O of [1, 256, 64] bf16: time', target: 0.02 },
    ],
    runs: 3,
    prepare: async (quick) => {
      const folder = await workFolder();
      const { path } = await writeAudited(folder, quick ? leastSize : testSize);
      const words = ['audit', path, '--json', join(folder, 'report.json')];
      const requests = quick ? 2 : warmUp + measuredRequests;
      return {
        measure: async () => {
          const seconds = await measureServer(commandLine, words, requests);
          return [seconds[0], median(seconds.slice(quick ? 1 : warmUp))];
        },
        dispose: () => rm(folder, { recursive: true, force: true }),
      };
    },
  };
}

/** What commands cost of which next to nothing is asked. */
export function fixedCostBenchmarks(commandLine: string): readonly Benchmark[] {
  return [commandBenchmark(commandLine), serverBenchmark(commandLine)];
}
