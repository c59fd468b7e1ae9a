import type { Rule } from 'eslint';

export function circleRule(law: {
  readonly root: string;
  readonly folders: readonly string[];
}): Rule.RuleModule;
