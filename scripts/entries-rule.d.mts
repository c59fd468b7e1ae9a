import type { Rule } from 'eslint';

export function entriesRule(law: { readonly root: string; readonly most: number }): Rule.RuleModule;
