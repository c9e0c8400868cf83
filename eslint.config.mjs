import js from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';
import prettierConfig from 'eslint-config-prettier';
import jest from 'eslint-plugin-jest';
import globals from 'globals';
import jupyterPlugin from '@jupyter/eslint-plugin';

/** The rules of a configuration, warnings raised to errors: a warning nobody must fix is noise. */
const asErrors = config => ({
  ...config,
  rules: Object.fromEntries(
    Object.entries(config.rules ?? {}).map(([rule, level]) => [
      rule,
      level === 'warn' || level === 1
        ? 'error'
        : Array.isArray(level) && (level[0] === 'warn' || level[0] === 1)
          ? ['error', ...level.slice(1)]
          : level
    ])
  )
});

export default defineConfig([
  {
    ignores: [
      'node_modules',
      'lib',
      'dist',
      'coverage',
      'jupyter_pause',
      'docs',
      'ui-tests',
      'style/index.js',
      'src/api/types.ts',
      '**/*.js',
      '**/*.mjs',
      '**/*.d.ts'
    ]
  },
  js.configs.recommended,
  tseslint.configs.recommended,
  [jupyterPlugin.configs.recommended].flat().map(asErrors),
  {
    files: ['**/*.ts', '**/*.tsx'],
    plugins: { jupyter: jupyterPlugin },
    languageOptions: {
      globals: { ...globals.browser, ...globals.es2015 },
      parserOptions: { project: 'tsconfig.test.json', sourceType: 'module' }
    },
    rules: {
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/naming-convention': [
        'error',
        {
          selector: 'interface',
          format: ['PascalCase'],
          custom: { regex: '^I[A-Z]', match: true }
        }
      ],
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-namespace': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { args: 'none' }],
      '@typescript-eslint/no-use-before-define': 'off',
      // Everything is needed when the plugins are activated: the button, the badge and the state are on the
      // screen from the first moment, and the whole bundle is smaller than one round trip is worth.
      'jupyter/prefer-lazy-imports': 'off',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'prefer-arrow-callback': 'error'
    }
  },
  {
    files: ['**/__tests__/**'],
    ...jest.configs['flat/recommended'],
    languageOptions: { globals: globals.jest },
    rules: {
      ...jest.configs['flat/recommended'].rules,
      'jest/expect-expect': [
        'error',
        { assertFunctionNames: ['expect', 'until'] }
      ]
    }
  },
  prettierConfig
]);
