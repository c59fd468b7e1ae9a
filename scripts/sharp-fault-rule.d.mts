import type { Rule } from 'eslint';

export function sharpFaultRule(law: {
  readonly root: string;
  readonly tables: Readonly<Record<string, string>>;
}): Rule.RuleModule;
