import { openRawTensors, readProblem } from '../../io/index.js';
import {
  gatherOutput,
  problemShape,
  quantityShape,
  type Problem,
  type Quantity,
} from '../../problem/index.js';
import type { LaunchTensor } from '../../ptx/launch/index.js';
import { RequestError } from '../../request-error.js';
import { listed, plainText } from '../../words/index.js';
import {
  contractInputs,
  givenQuantities,
  isGradient,
  templateQuantities,
} from './contract-names.js';
import type { ContractOutput } from './contract-output.js';
import { placesOf, placeView, type PlacedView, viewBytes } from './contract-views.js';
import type { GivenContract } from './open-contract.js';
import type { OpenedLaunch, PosedLaunch } from './open-launch.js';
import { readRecurrentContract, type RecurrentContract } from './recurrent-contract.js';

/** The problem of attention that a launch solves, and the places of its outputs. */
export interface AttentionContract {
  readonly kind: 'attention';
  readonly problem: Problem;
  readonly outputs: readonly ContractOutput[];
  /** What a backward kernel is given beside the problem: `dout`, `delta`, `out`, `lse`. */
  readonly given: readonly ContractOutput[];
}

/** What a launch is to compute. */
export type LaunchContract = AttentionContract | RecurrentContract;

/** The problem of a contract's inputs: they are read as the tensors of a problem file. */
async function readInputs(
  { file, where }: GivenContract,
  tensors: ReadonlyMap<string, LaunchTensor>,
): Promise<Problem> {
  const views = [...file.views].filter(([name]) => contractInputs.includes(name));
  const raw = views.map(([name, view]) => {
    const placed = placeView(name, view, tensors);
    const { dtype } = placed.tensor;
    return { name, dtype, shape: placed.shape, bytes: viewBytes(placed) };
  });
  const formats = Object.fromEntries(
    views.flatMap(([name, { format }]) => (format === null ? [] : [[name, format as never]])),
  );
  return readProblem(openRawTensors(where, raw, file.notes, { formats }));
}

/** Row-major places of a quantity's elements. */
function elementsIn(shape: readonly number[]): ContractOutput['elementOf'] {
  const [, heads, rows, columns = 1] = shape;
  return (batch, head, row, column) => ((batch * heads + head) * rows + row) * columns + column;
}

/** The sizes of a quantity; one of one number a row has a single column. */
function sizesOf(shape: readonly number[]): ContractOutput['shape'] {
  const [batch, heads, rows, columns = 1] = shape;
  return [batch, heads, rows, columns];
}

/**
 * An output of a contract: the places of its elements lie as a kernel's output does, and are gathered in its stead.
 * @throws RequestError for a shape that the output cannot have
 */
function outputOf(problem: Problem, quantity: Quantity, view: PlacedView): ContractOutput {
  const places = { format: 'fp64', shape: view.shape, data: placesOf(view) } as const;
  const gathered = gatherOutput(problem, quantity, places);
  const wanted = quantityShape(quantity, problemShape(problem));
  const lacksBatch = gathered.shape.length === wanted.length - 1;
  if (String(lacksBatch ? [1, ...gathered.shape] : gathered.shape) !== String(wanted))
    throw new RequestError(
      `${quantity.name} has shape [${view.shape.join(', ')}], but the problem's is [${wanted.join(', ')}]; mend it`,
    );
  const elementOf = elementsIn(wanted);
  return {
    name: quantity.name,
    tensor: view.tensor.name,
    shape: sizesOf(wanted),
    elementOf: (...place) => Number(gathered.data[elementOf(...place)]),
  };
}

/** What a contract says that the launch is given: of a backward kernel, what the launch does not write. */
function readGiven(
  { file: contract }: GivenContract,
  { file, tensors }: OpenedLaunch,
  problem: Problem,
): readonly ContractOutput[] {
  if (![...contract.views.keys()].some(isGradient)) return [];
  const written = file.outputs.map(({ name }) => name);
  return givenQuantities.flatMap((quantity) => {
    const view = contract.views.get(quantity.name);
    if (view === undefined || written.includes(view.tensor)) return [];
    return [outputOf(problem, quantity, placeView(quantity.name, view, tensors))];
  });
}

/** The outputs of a contract among those of its launch. */
function readOutputs(
  { file: contract }: GivenContract,
  { file, tensors }: OpenedLaunch,
  problem: Problem,
  given: readonly ContractOutput[],
): readonly ContractOutput[] {
  const written = file.outputs.map(({ name }) => name);
  const outputs = templateQuantities.flatMap((quantity) => {
    const view = contract.views.get(quantity.name);
    if (view === undefined || given.some(({ name }) => name === quantity.name)) return [];
    const placed = placeView(quantity.name, view, tensors);
    if (!written.includes(view.tensor))
      throw new RequestError(
        `${quantity.name} is a view of "${plainText(view.tensor)}", which is no output of the launch; ` +
          `name one of its outputs (${plainText(listed(written)) || 'none'}), or add it to them`,
      );
    return [outputOf(problem, quantity, placed)];
  });
  if (outputs.length > 0) return outputs;
  throw new RequestError(
    `names no output; give one of ${listed(templateQuantities.map(({ name }) => name))}`,
  );
}

/** The contract of a launch from views of its tensors. */
async function fromViews(given: GivenContract, opened: OpenedLaunch): Promise<LaunchContract> {
  try {
    if (given.file.kind === 'recurrent') return readRecurrentContract(given, opened);
    const problem = await readInputs(given, opened.tensors);
    const inputs = readGiven(given, opened, problem);
    const outputs = readOutputs(given, opened, problem, inputs);
    return { kind: 'attention', problem, outputs, given: inputs };
  } catch (error) {
    if (!(error instanceof RequestError) || error.message.startsWith(given.where)) throw error;
    throw new RequestError(`${given.where}: ${error.message}`);
  }
}

/** What a template is given beside its problem, by the names of problem files; nothing where it writes no gradient. */
function givenToTemplate(
  { tensors, file }: OpenedLaunch,
  { problem, outputs }: PosedLaunch,
): readonly ContractOutput[] {
  if (!outputs.some(({ quantity }) => isGradient(quantity.name))) return [];
  const made = [...file.outputs, ...file.buffers].map(({ name }) => name);
  return givenQuantities.flatMap((quantity) => {
    const tensor = tensors.get(quantity.name);
    if (tensor === undefined || made.includes(quantity.name)) return [];
    const view = {
      tensor: tensor.name,
      shape: tensor.shape,
      strides: null,
      offset: 0,
      format: null,
    };
    return [outputOf(problem, quantity, placeView(quantity.name, view, tensors))];
  });
}

/**
 * The problem that a launch solves, and the places of its outputs: from a contract that is given, from the problem that a
 * template was opened on, or from the contract in the launch file.
 *
 * @param given null for none
 * @throws RequestError for a launch without any, and for a contract that does not fit the launch's tensors
 */
export async function contractOfLaunch(
  opened: OpenedLaunch,
  given: GivenContract | null = null,
): Promise<LaunchContract> {
  const { posed, file, path } = opened;
  if (given !== null) return fromViews(given, opened);
  if (posed !== null) {
    const shape = problemShape(posed.problem);
    return {
      kind: 'attention',
      problem: posed.problem,
      given: givenToTemplate(opened, posed),
      outputs: posed.outputs.map(({ name, quantity }) => {
        const wanted = quantityShape(quantity, shape);
        return {
          name: quantity.name,
          tensor: name,
          shape: sizesOf(wanted),
          elementOf: elementsIn(wanted),
        };
      }),
    };
  }
  if (file.contract !== null)
    return fromViews({ file: file.contract, where: `${plainText(path)}: contract` }, opened);
  throw new RequestError(
    `${plainText(path)}: does not say what its tensors are; add a contract to it, or give --contract <file>, or --problem for a template`,
  );
}
