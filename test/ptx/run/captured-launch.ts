import {
  bindLaunch,
  type Launch,
  type LaunchTensor,
  parseLaunchFile,
} from '../../../src/ptx/launch/index.js';
import { runLaunch, type LaunchOptions, type LaunchRun } from '../../../src/ptx/run/index.js';
import { parsePtx, type PtxModule } from '../../../src/ptx/syntax/index.js';
import { capturedKernel } from '../../fixtures/captured-ptx.js';

const elementBits = (dtype: string): number =>
  dtype === 'BOOL' ? 8 : Number(/[0-9]+/.exec(dtype)?.[0]);

/** The tensors of a safetensors file, by name. */
function tensorsOf(file: Uint8Array): ReadonlyMap<string, LaunchTensor> {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(Buffer.from(file.subarray(8, start)).toString()) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  return new Map(
    Object.entries(header).flatMap(
      ([
        name,
        {
          dtype,
          shape,
          data_offsets: [from, to],
        },
      ]) => {
        if (name === '__metadata__') return [];
        const bytes = file.slice(start + from, start + to);
        return [[name, { name, dtype, elementBits: elementBits(dtype), shape, bytes }] as const];
      },
    ),
  );
}

/** A captured kernel that ran here, and what an H200 made of it. */
export interface CapturedRun {
  readonly run: LaunchRun;
  /**
   * Bytes of each output that differ from the H200's, of so many, where the PTX was assembled with contraction or
   * without as it ran here; for kernels with results.
   */
  readonly differences: ReadonlyMap<string, { readonly differing: number; readonly of: number }>;
}

/** A captured kernel, ready to be launched. */
export interface CapturedLaunch {
  readonly module: PtxModule;
  readonly launch: Launch;
  /** All tensors of its file, the results of an H200 among them. */
  readonly tensors: ReadonlyMap<string, LaunchTensor>;
  readonly options: Pick<LaunchOptions, 'file' | 'architecture'>;
}

/** A captured kernel, its text as it is or edited, with the arithmetic of the GPU that its results are of. */
export async function openCaptured(
  name: string,
  edit = (ptx: string) => ptx,
): Promise<CapturedLaunch> {
  const { ptx, launch: file, tensors: packed } = capturedKernel(name);
  const module = parsePtx(edit(ptx), name);
  const tensors = tensorsOf(packed);
  const launch = bindLaunch(await parseLaunchFile(JSON.stringify(file), name, ['out', 'lse']), {
    module,
    tensors,
    variables: {},
    fileName: name,
  });
  const architecture = module.target.startsWith('sm_10') ? 'sm_100' : 'sm_90';
  return { module, launch, tensors, options: { file: name, architecture } };
}

/** Runs a captured kernel. */
export async function runCaptured(
  name: string,
  options: Omit<LaunchOptions, 'file'> = {},
): Promise<CapturedRun> {
  const { module, launch, tensors, options: own } = await openCaptured(name);
  const run = runLaunch(module, launch, { ...own, ...options });
  const differences = new Map<string, { differing: number; of: number }>();
  const { runs } = options;
  for (const output of launch.outputs) {
    // Both are the same where contraction changes nothing; then there is one.
    const fused = tensors.get(`${output.name}.fused`);
    const due =
      options.contract === true ? fused : (tensors.get(`${output.name}.unfused`) ?? fused);
    const got = run.tensors.get(output.name)!;
    if (due === undefined) continue;
    // Where a part of the grid has run, what it has not changed says nothing.
    const before = runs === undefined ? null : tensors.get(output.name)!.bytes;
    let [differing, of] = [0, 0];
    for (let i = 0; i < got.length; i++) {
      if (before !== null && got[i] === before[i]) continue;
      of++;
      if (got[i] !== due.bytes[i]) differing++;
    }
    differences.set(output.name, { differing, of });
  }
  return { run, differences };
}
