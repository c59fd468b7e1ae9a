import { spawnSync } from 'node:child_process';
import { availableParallelism, freemem, totalmem } from 'node:os';
import { getHeapStatistics } from 'node:v8';
import { printable } from '../../io/index.js';
import { documentHead, secondsSince } from '../../jobs/index.js';
import { probeSentence, renderProbes, type MachineProbe } from '../../report/text/index.js';
import { writeJson } from '../files/publish.js';
import { toolVersion } from '../tool-version.js';
import type { DoctorCommandOptions } from './options.js';

/** The oldest release of Node.js that flashproof runs on, as package.json says. */
const oldestNode = [20, 19] as const;

/** A module whose only function has a value of 128 bits: it is valid where WebAssembly SIMD is. */
const simdModule = Uint8Array.of(
  ...[0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00],
  // Type () → (v128); one function of it; its code: i32.const 0, i8x16.splat.
  ...[0x01, 0x05, 0x01, 0x60, 0x00, 0x01, 0x7b, 0x03, 0x02, 0x01, 0x00],
  ...[0x0a, 0x08, 0x01, 0x06, 0x00, 0x41, 0x00, 0xfd, 0x0f, 0x0b],
);

/** Bytes of memory below which long problems do not fit. */
const littleMemory = 2 * 2 ** 30;

/** The most time that a command may take, in milliseconds. */
const patience = 10_000;

/** Runs a command and returns its printed text, null if there is no such command or it fails. */
type RunTool = (command: string, words: readonly string[]) => string | null;

/** Runs a command of this machine. */
const runTool: RunTool = (command, words) => {
  const { status, stdout } = spawnSync(command, words, {
    encoding: 'utf8',
    timeout: patience,
    stdio: ['ignore', 'pipe', 'ignore'],
    windowsHide: true,
  });
  return status === 0 ? stdout.trim() : null;
};

function gibibytes(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

/** Whether a version such as v20.19.1 is at least the oldest. */
export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  return major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
}

/** Probes of the platform that flashproof runs on. */
function ownProbes(): MachineProbe[] {
  const needed = { isNeeded: true } as const;
  const heap = getHeapStatistics().heap_size_limit;
  return [
    {
      ...needed,
      name: 'Node.js',
      isUsable: isNewEnough(process.version),
      found: process.version,
      note: `${oldestNode.join('.')} or newer`,
    },
    {
      ...needed,
      name: 'WebAssembly SIMD',
      isUsable: WebAssembly.validate(simdModule),
      found: WebAssembly.validate(simdModule) ? 'yes' : '',
      note: 'the inner loops',
    },
    {
      name: 'cores',
      isNeeded: false,
      isUsable: true,
      found: String(availableParallelism()),
      note: '--threads takes fewer',
    },
    {
      name: 'memory',
      isNeeded: false,
      isUsable: totalmem() >= littleMemory,
      found: `${gibibytes(totalmem())}, ${gibibytes(freemem())} free`,
      note:
        totalmem() >= littleMemory
          ? `heap of Node.js: ${gibibytes(heap)}`
          : 'little for long problems: judge samples with --rows',
    },
  ];
}

/** A tool that counts as present if a command answers, with the pattern of its version and its purpose. */
interface Tool {
  readonly name: string;
  readonly command: string;
  readonly words: readonly string[];
  readonly version: RegExp;
  readonly note: string;
}

/** Packages of Python, and the purpose of each. */
const pythonPackages: readonly (readonly [name: string, note: string])[] = [
  ['numpy', 'dumps as .npz'],
  ['safetensors', 'dumps as .safetensors'],
  ['torch', 'kernels of PyTorch'],
  ['triton', 'recording Triton kernels'],
];

/** Prints versions, a line each: Python's, then those of the installed packages. */
const versionsProgram = `
import importlib.metadata, platform
print("Python", platform.python_version())
for name in ${JSON.stringify(pythonPackages.map(([name]) => name))}:
    try:
        print(name, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        pass
`;

/** Python and its packages, by one process. */
function pythonProbes(run: RunTool): MachineProbe[] {
  const printed = run('python3', ['-c', versionsProgram]) ?? '';
  const versions = new Map(
    [...printed.matchAll(/^(\w+) (\d\S*)$/gm)].map(([, name, version]) => [name, version]),
  );
  return [['Python', 'live kernels, dumps'] as const, ...pythonPackages].map(([name, note]) => {
    const found = versions.get(name) ?? '';
    return { name, isNeeded: false, isUsable: found !== '', found, note };
  });
}

/** Tools that users may have beside it. */
const tools: readonly Tool[] = [
  {
    name: 'nvcc',
    command: 'nvcc',
    words: ['--version'],
    version: /release (\S+?),/,
    note: 'compiling CUDA to PTX',
  },
  {
    name: 'GPU',
    command: 'nvidia-smi',
    words: ['--query-gpu=name', '--format=csv,noheader'],
    version: /^(.+)/,
    note: 'not needed: kernels are emulated',
  },
];

/** The parts of the machine and whether each is usable, the needed ones first. */
export function probeMachine(run: RunTool = runTool): MachineProbe[] {
  return [
    ...ownProbes(),
    ...pythonProbes(run),
    ...tools.map(({ name, command, words, version, note }) => {
      const printed = run(command, words);
      const found = printed === null ? null : version.exec(printed);
      return {
        name,
        isNeeded: false,
        isUsable: found !== null,
        found: found === null ? '' : found[1],
        note,
      };
    }),
  ];
}

/**
 * Runs `flashproof doctor`: reports the usable parts of this machine. Returns the exit status: 1 where something is missing
 * that flashproof needs.
 * @throws RequestError when the JSON file cannot be written
 */
export async function runDoctor({ json, quiet }: DoctorCommandOptions): Promise<number> {
  const start = performance.now();
  const probes = probeMachine().map((probe) => ({ ...probe, found: printable(probe.found) }));
  const pass = probes.every(({ isNeeded, isUsable }) => isUsable || !isNeeded);
  if (json !== '-')
    process.stdout.write(quiet === true ? `${probeSentence(probes)}\n` : renderProbes(probes));
  if (json !== undefined)
    await writeJson(json, {
      ...documentHead('doctor', toolVersion(), secondsSince(start)),
      verdict: { pass, sentence: probeSentence(probes) },
      probes,
    });
  return pass ? 0 : 1;
}
