import { RequestError } from '../../request-error.js';
import { slotBytes, type RegisterWidth } from '../instructions/index.js';
import type {
  Operand,
  PtxFunction,
  PtxModule,
  Statement,
  VariableDeclaration,
} from '../syntax/index.js';
import { contract, findContractions } from './contraction.js';
import { layOut, type Declaring, type Layout } from './declare.js';
import { completeCall } from './lower-call.js';
import { lowerFunction } from './lower-function.js';
import type { FormalParameter, FunctionInterface, ProgramLowering } from './lowering.js';
import { placeVariables } from './module-variables.js';
import type { SlotAllocator } from './parameter-pieces.js';
import type { KernelParameter, PlaceVariable, Program, ProgramFunction } from './program.js';
import {
  alignTo,
  createScope,
  registerWidth,
  variableAlignment,
  variableBytes,
  type Scope,
} from './scope.js';
import {
  createRowFinder,
  type InstructionTables,
  createUnsupportedCollector,
  type UnsupportedCollector,
} from './tables.js';

/** The parts of a module that a kernel needs. */
interface Reachable {
  /** The kernel, and the functions that it calls, each after the functions that call it first. */
  readonly functions: readonly PtxFunction[];
  /** Every name in their instructions. */
  readonly names: ReadonlySet<string>;
}

function* namesOf(operand: Operand): Generator<string> {
  switch (operand.kind) {
    case 'name':
    case 'sum':
      yield operand.name;
      break;
    case 'address':
      if (operand.base !== null) yield operand.base;
      break;
    case 'vector':
    case 'list':
      for (const element of operand.elements) yield* namesOf(element);
      break;
    case 'pair':
      yield* namesOf(operand.first);
      yield* namesOf(operand.second);
      break;
    default:
  }
}

function collect(
  statements: readonly Statement[],
  names: Set<string>,
  calls: Map<string, number>,
): void {
  for (const statement of statements) {
    if (statement.kind === 'block') collect(statement.statements, names, calls);
    if (statement.kind !== 'instruction') continue;
    for (const operand of statement.operands)
      for (const name of namesOf(operand)) {
        names.add(name);
        if (statement.opcode === 'call' && !calls.has(name)) calls.set(name, statement.place.line);
      }
  }
}

/**
 * The functions and names that a kernel needs. A function that calls itself, directly or through others, is
 * collected as unsupported: its frames have no bound.
 */
function findReachable(
  { functions }: PtxModule,
  entry: PtxFunction,
  unsupported: UnsupportedCollector,
): Reachable {
  const bodies = new Map<string, PtxFunction>();
  for (const one of functions) if (one.body !== null) bodies.set(one.name, one);
  const names = new Set<string>();
  const reached = new Map<string, PtxFunction>();
  const path: string[] = [];

  function visit(one: PtxFunction): void {
    reached.set(one.name, one);
    path.push(one.name);
    const calls = new Map<string, number>();
    collect(one.body!, names, calls);
    for (const [name, line] of calls) {
      const callee = bodies.get(name);
      if (callee === undefined) continue;
      if (path.includes(name)) unsupported.add(line, `call of ${name}`, 'recursion');
      else if (!reached.has(name)) visit(callee);
    }
    path.pop();
  }

  visit(entry);
  return { functions: [...reached.values()], names };
}

/** Options for making a program. */
export interface ProgramOptions {
  readonly tables: InstructionTables;
  /** Chooses the addresses of variables of the module. */
  readonly place: PlaceVariable;
  /** The name of the text in messages: that of its file. */
  readonly file: string;
  /** Whether pairs of a mul and an add that an assembler may contract are executed as one fma; default false. */
  readonly contract?: boolean;
  /** Whether CTAs form clusters, so that addresses of shared memory depend on the rank; default false. */
  readonly hasClusters?: boolean;
  /** Lines whose registers are watched; default none. */
  readonly watched?: ReadonlySet<number>;
}

function createSlotAllocator(): SlotAllocator {
  let bytes = 0;
  return {
    allocate: (width: RegisterWidth) => {
      const slot = { offset: bytes, width };
      bytes += slotBytes(width);
      return slot;
    },
    bytes: () => bytes,
  };
}

/** Lowers functions into a program, with the calls between them. */
function lowerFunctions(
  reached: readonly PtxFunction[],
  declaring: Declaring,
): ReadonlyMap<string, ProgramFunction> {
  const { program } = declaring;
  const functions = new Map<string, ProgramFunction>();
  const calls = reached.flatMap((one) => {
    const lowered = lowerFunction(program, one, declaring);
    const { name, place: at } = one;
    functions.set(name, { name, line: at.line, blocks: lowered.blocks });
    return lowered.calls;
  });
  for (const call of calls) completeCall(program, call, functions);
  return functions;
}

/** Registers of a program that have their values from the launch or from their warp. */
function givenRegisters(
  program: ProgramLowering,
): Pick<Program, 'specialRegisters' | 'parameterRegisters' | 'sharedAddresses'> {
  return {
    specialRegisters: [...program.specials.values()].flatMap(({ binding, register }) =>
      binding.kind === 'register' ? [{ slot: binding.slot, register }] : [],
    ),
    parameterRegisters: [...program.parameterRegisters.values()],
    sharedAddresses: [...(program.sharedAddresses ?? [])].map(([address, slot]) => ({
      address,
      slot,
    })),
  };
}

/**
 * The executable program of a kernel: names are resolved, registers have places, blocks know where lanes that part
 * meet again. RequestErrors: a missing kernel; all its unsupported features, with their lines.
 */
export function createProgram(
  module: PtxModule,
  entryName: string,
  options: ProgramOptions,
): Program {
  const { tables, place, file, contract: isContracted = false, hasClusters = false } = options;
  const entry = findEntry(module, entryName, file);
  const unsupported = createUnsupportedCollector();
  if (module.addressSize !== 64)
    unsupported.add(1, `.address_size ${module.addressSize}`, 'addresses of 64 bits');
  const slots = createSlotAllocator();
  const reachable = findReachable(module, entry, unsupported);
  unsupported.check(file);
  const shared: Layout = { bytes: 0 };
  const local: Layout = { bytes: 0 };
  const scope = createScope(null);
  const layOutFunctions = (layout: Layout): void =>
    reachable.functions.forEach(({ body }) => layOutShared(layout, body!));
  const variableOptions = { scope, shared, layOutFunctions, place, unsupported };
  const { placed, staticSharedBytes } = placeVariables(module, reachable.names, variableOptions);
  const parameters: KernelParameter[] = [];
  const interfaces = new Map<string, FunctionInterface>();
  for (const one of reachable.functions)
    interfaces.set(one.name, declareInterface(one, createScope(scope), slots, parameters));
  const program: ProgramLowering = {
    tables,
    findRow: createRowFinder(tables),
    slots,
    unsupported,
    parameterRegisters: new Map(),
    specials: new Map(),
    sharedAddresses: hasClusters ? new Map() : null,
    watched: new Map([...(options.watched ?? [])].map((line) => [line, []])),
    interfaces,
  };
  let labels = 0;
  const declaring: Declaring = { program, shared, local, nextLabel: () => labels++ };
  const functions = lowerFunctions(reachable.functions, declaring);
  unsupported.check(file);
  const all = [...functions.values()];
  const pairs = findContractions(all);
  if (isContracted) contract(pairs, tables.lane, slots);
  return {
    entry: functions.get(entry.name)!,
    functions: all,
    registerBytes: slots.bytes(),
    ...givenRegisters(program),
    parameters,
    variables: placed,
    staticSharedBytes,
    localBytes: local.bytes,
    directives: entry.directives,
    watched: program.watched,
    contractions: pairs.map(({ line, mnemonic }) => ({ line, mnemonic })),
  };
}

function findEntry({ functions }: PtxModule, name: string, file: string): PtxFunction {
  const entries = functions.filter(({ kind, body }) => kind === 'entry' && body !== null);
  const entry = entries.find((one) => one.name === name);
  if (entry !== undefined) return entry;
  const names = entries.map((one) => one.name).join(', ');
  throw new RequestError(
    `${file}: there is no kernel "${name}"; ${names === '' ? 'it has none' : `it has ${names}`}`,
  );
}

/** Puts the parameters of a function into its scope. */
function declareInterface(
  { kind, parameters, returns }: PtxFunction,
  scope: Scope,
  slots: SlotAllocator,
  kernelParameters: KernelParameter[],
): FunctionInterface {
  if (kind === 'entry') {
    let offset = 0;
    for (const parameter of parameters) {
      const { name } = parameter;
      const alignment = variableAlignment(parameter);
      const bytes = variableBytes(parameter) ?? 0;
      offset = alignTo(offset, alignment);
      kernelParameters.push({ name, offset, bytes, alignment });
      scope.bindings.set(name, { kind: 'variable', space: 'param', address: offset });
      offset += bytes;
    }
    return { scope, parameters: [], returns: [] };
  }
  const formal = (variable: VariableDeclaration): FormalParameter => {
    const binding: FormalParameter =
      variable.space === 'reg'
        ? { kind: 'register', slot: slots.allocate(registerWidth(variable.type)) }
        : { kind: 'parameter', pieces: { pieces: new Map() } };
    scope.bindings.set(variable.name, binding);
    return binding;
  };
  return { scope, parameters: parameters.map(formal), returns: returns.map(formal) };
}

/** Adds the shared memory that statements declare, in the order of their later declaration. */
function layOutShared(layout: Layout, statements: readonly Statement[]): void {
  for (const statement of statements)
    if (statement.kind === 'variable' && statement.space === 'shared') layOut(layout, statement);
  for (const statement of statements)
    if (statement.kind === 'block') layOutShared(layout, statement.statements);
}
