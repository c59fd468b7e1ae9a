import { openRawTensors, readProblem, scaleTensorNames } from '../../io/index.js';
import { problemShape, type Problem, type ProblemShape, type Tensor } from '../../problem/index.js';
import type { LaunchTensor } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { plainText } from '../../words/index.js';
import { contractInputs } from './contract-names.js';
import type { AttentionContract } from './contract-of-launch.js';
import type { GivenContract } from './open-contract.js';
import { placesOf, placeView, viewBytes } from './contract-views.js';
import type { OpenedLaunch } from './open-launch.js';

/** The inputs of attention whose elements have places. */
export const inputRoles = ['q', 'k', 'v'] as const;

/** One of them. */
export type InputRole = (typeof inputRoles)[number];

/** What a backward kernel is given beside them: a row for each query. */
export const givenRoles = ['dout', 'delta', 'out', 'lse'] as const;

/** An input whose elements have places. */
export type PlacedRole = InputRole | (typeof givenRoles)[number];

/** Where the elements of an input of the problem lie in a tensor of the launch. */
export interface InputPlaces {
  readonly role: InputRole;
  /** The launch's tensor. */
  readonly tensor: string;
  /** Elements of it, row-major in the problem's [batch, heads, rows, dim]: packed sequences are one behind the other in batch 0. */
  readonly places: Float64Array;
}

/** The same of any input. */
export interface PlacedInput extends Omit<InputPlaces, 'role'> {
  readonly role: PlacedRole;
}

/** Whether a setting is about factors of Q, K or V, which places have none of. */
function isOfScales(name: string): boolean {
  return name.includes('descale') || scaleTensorNames.includes(name);
}

/** The problem of a contract with the places of q, k and v in place of their numbers. */
async function readPlaces(
  { file, where }: GivenContract,
  tensors: ReadonlyMap<string, LaunchTensor>,
): Promise<Problem> {
  const views = [...file.views].filter(
    ([name]) => contractInputs.includes(name) && !isOfScales(name),
  );
  const isPlaced = (name: string) => inputRoles.some((role) => role === name);
  const raw = views.map(([name, view]) => {
    const placed = placeView(name, view, tensors);
    const { shape } = placed;
    if (!isPlaced(name))
      return { name, dtype: placed.tensor.dtype, shape, bytes: viewBytes(placed) };
    return { name, dtype: 'F64', shape, bytes: new Uint8Array(placesOf(placed).buffer) };
  });
  const formats = Object.fromEntries(
    views.flatMap(([name, { format }]) =>
      format === null || isPlaced(name) ? [] : [[name, format as never]],
    ),
  );
  const notes = new Map([...file.notes].filter(([name]) => !isOfScales(name)));
  return readProblem(openRawTensors(where, raw, notes, { formats }));
}

function numbersOf({ data }: Tensor): Float64Array {
  return Float64Array.from(data as Float64Array);
}

/**
 * The places of q, k and v in a launch's tensors: of a template that was opened on a problem, row-major; else by the contract.
 *
 * @param given null for none beside that of the launch file
 * @throws RequestError for a launch without any, and for a contract that does not fit the launch's tensors
 */
export async function inputPlaces(
  { posed, file, path, tensors }: OpenedLaunch,
  given: GivenContract | null = null,
): Promise<readonly InputPlaces[]> {
  const where = `${plainText(path)}: contract`;
  const own = posed === null && file.contract !== null ? { file: file.contract, where } : null;
  const contract = given ?? own;
  if (contract !== null) {
    const problem = await readPlaces(contract, tensors);
    return inputRoles.map((role) => ({
      role,
      tensor: contract.file.views.get(role)!.tensor,
      places: numbersOf(problem[role]),
    }));
  }
  if (posed === null)
    throw new RequestError(`${plainText(path)}: does not say what its tensors are`);
  const { batch, heads, kvHeads, queries, keys, qkDim, vDim } = problemShape(posed.problem);
  const counts = {
    q: heads * queries * qkDim,
    k: kvHeads * keys * qkDim,
    v: kvHeads * keys * vDim,
  };
  return inputRoles.map((role) => ({
    role,
    tensor: role,
    places: Float64Array.from({ length: batch * counts[role] }, (_, i) => i),
  }));
}

/** The shape of an input without its batch: heads, rows and columns. */
export function shapeOfRole(
  role: PlacedRole,
  { heads, kvHeads, queries, keys, qkDim, vDim }: ProblemShape,
): readonly [heads: number, rows: number, columns: number] {
  if (role === 'k') return [kvHeads, keys, qkDim];
  if (role === 'v') return [kvHeads, keys, vDim];
  const columns = { q: qkDim, dout: vDim, out: vDim, delta: 1, lse: 1 } as const;
  return [heads, queries, columns[role]];
}

/** The places of what a backward kernel is given beside the problem, in the order of the problem. */
export function givenPlaces({ problem, given }: AttentionContract): readonly PlacedInput[] {
  const shape = problemShape(problem);
  return givenRoles.flatMap((role) => {
    const input = given.find(({ name }) => name === role);
    if (input === undefined) return [];
    const [heads, rows, columns] = shapeOfRole(role, shape);
    const places = Float64Array.from({ length: shape.batch * heads * rows * columns }, (_, i) => {
      const row = Math.floor(i / columns);
      const head = Math.floor(row / rows);
      return input.elementOf(Math.floor(head / heads), head % heads, row % rows, i % columns);
    });
    return [{ role, tensor: input.tensor, places }];
  });
}
