import type { Statement, VariableDeclaration } from '../syntax/index.js';
import type { ProgramLowering } from './lowering.js';
import {
  alignTo,
  registerWidth,
  variableAlignment,
  variableBytes,
  type Binding,
  type Scope,
} from './scope.js';

/** A stretch of memory that is laid out one variable after the other. */
export interface Layout {
  bytes: number;
}

/** The layouts and labels in which declarations of a function get their places. */
export interface Declaring {
  readonly program: ProgramLowering;
  readonly shared: Layout;
  readonly local: Layout;
  readonly nextLabel: () => number;
}

/** Puts the declarations of statements into their scope: registers, variables, parameters of calls, labels. */
export function declare(
  declaring: Declaring,
  statements: readonly Statement[],
  scope: Scope,
): void {
  for (const statement of statements)
    switch (statement.kind) {
      case 'label':
        scope.bindings.set(statement.name, { kind: 'label', label: declaring.nextLabel() });
        break;
      case 'branch-targets':
        scope.bindings.set(statement.name, { kind: 'targets', labels: statement.labels });
        break;
      case 'variable':
        declareVariable(declaring, statement, scope);
        break;
      default:
    }
}

function declareVariable(declaring: Declaring, variable: VariableDeclaration, scope: Scope): void {
  const { program } = declaring;
  const { name, space, place } = variable;
  const wrong = (why: string) => program.unsupported.add(place.line, `.${space} ${name}`, why);
  switch (space) {
    case 'reg': {
      if (variable.vector !== 1) return wrong('registers that are vectors');
      const width = registerWidth(variable.type);
      if (variable.count !== null) scope.families.set(name, { count: variable.count, width });
      else scope.bindings.set(name, { kind: 'register', slot: program.slots.allocate(width) });
      return;
    }
    case 'param':
      scope.bindings.set(name, { kind: 'parameter', pieces: { pieces: new Map() } });
      return;
    case 'shared':
    case 'local': {
      const binding = layOut(declaring[space], variable);
      if (binding === null) wrong('a size');
      else scope.bindings.set(name, binding);
      return;
    }
    default:
      wrong('variables of this space outside functions');
  }
}

/** The place of a variable after the variables before it; null where its size is not stated. */
export function layOut(layout: Layout, variable: VariableDeclaration): Binding | null {
  const bytes = variableBytes(variable);
  if (bytes === null) return null;
  const address = alignTo(layout.bytes, variableAlignment(variable));
  layout.bytes = address + bytes;
  return { kind: 'variable', space: variable.space as 'shared' | 'local', address };
}
