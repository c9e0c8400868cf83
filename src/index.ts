/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { JupyterFrontEndPlugin } from '@jupyterlab/application';

import { commandsPlugin } from './plugins/commands';
import { connectionPlugin } from './plugins/connection';
import { badgePlugin, toolbarPlugin } from './plugins/indicators';
import {
  actionsPlugin,
  managerPlugin,
  sessionPlugin,
  settingsPlugin
} from './plugins/manager';
import {
  documentsPlugin,
  executorPlugin,
  lastStopPlugin,
  noticePlugin,
  notificationsPlugin,
  reconnectPlugin,
  runningPlugin
} from './plugins/notebooks';
import { outagePlugin } from './plugins/outage';
import { panelPlugin } from './plugins/panel';
import { shutDownPlugin } from './plugins/shutdown';
import {
  pausedScreenPlugin,
  resumeReportPlugin,
  workspacePlugin
} from './plugins/workspace';

export * from './tokens';

/**
 * One plugin per feature, so that each can be disabled alone.
 */
const plugins: JupyterFrontEndPlugin<unknown>[] = [
  managerPlugin,
  settingsPlugin,
  sessionPlugin,
  actionsPlugin,
  commandsPlugin,
  toolbarPlugin,
  badgePlugin,
  panelPlugin,
  runningPlugin,
  executorPlugin,
  documentsPlugin,
  noticePlugin,
  notificationsPlugin,
  lastStopPlugin,
  reconnectPlugin,
  connectionPlugin,
  outagePlugin,
  shutDownPlugin,
  workspacePlugin,
  pausedScreenPlugin,
  resumeReportPlugin
];

export default plugins;
