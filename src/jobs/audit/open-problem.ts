import {
  namesRead,
  problemLayout,
  readProblem,
  unusedInputs,
  type TensorFile,
} from '../../io/tensors/index.js';
import type { Provenance, WidenedTensor } from '../../report/json/index.js';
import type { AuditWork } from './audit-work.js';
import type { OpenProblem } from './kernel-source.js';
import type { JudgedOutputs } from './read-outputs.js';

/**
 * Reads the problem of an open file.
 * @param beside names of other tensors of the file that a kernel takes
 * @throws RequestError for a file that holds none
 */
export async function openProblem(
  { file, settings: { problem: settings, source } }: AuditWork,
  beside: Iterable<string>,
): Promise<OpenProblem> {
  const problem = await readProblem(file, { ...settings, keepsPosed: source?.keepsPosed === true });
  const headsFirst = problemLayout(file, settings) === 'bhsd';
  const { tensors, notes } = namesRead(file, settings);
  const read = { tensors: [...tensors, ...beside], notes };
  return { file, problem, reading: { headsFirst, problem }, read };
}

/** The tensors of the problem's file, and outputs in other files, that are read in a narrower format than they are stored in. */
function widenedTensors(
  { path, entries }: TensorFile,
  sources: Provenance['outputs'],
): WidenedTensor[] {
  const others = Object.values(sources).flatMap((source) =>
    source === null || source.path === path ? [] : [{ ...source, name: source.tensor }],
  );
  return [...entries.values(), ...others].flatMap(({ name, format, storedAs }) =>
    format === null || storedAs === undefined ? [] : [{ name, format, storedAs }],
  );
}

/** The sources of the problem and its outputs; no outputs if the kernel gave none. */
export async function originOf(
  { file, settings: { version, source }, means: { hash } }: AuditWork,
  { read, unasked = [] }: Pick<OpenProblem, 'read'> & Pick<JudgedOutputs, 'unasked'>,
  sources: Provenance['outputs'],
): Promise<Omit<Provenance, 'seconds'>> {
  const { path } = file;
  const used = Object.values(sources).flatMap((one) => (one?.path === path ? [one.tensor] : []));
  const unused = unusedInputs(file, { tensors: [...read.tensors, ...used], notes: read.notes });
  const written = unasked.map((name) => `output ${name}`);
  return {
    version,
    problem: { path, sha256: await hash(path) },
    outputs: sources,
    command: source?.command(path, Object.hasOwn(sources, 'dq')) ?? null,
    unused: { ...unused, unknown: [...unused.unknown, ...written] },
    widened: widenedTensors(file, sources),
  };
}
