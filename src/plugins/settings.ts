/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { ISignal } from '@lumino/signaling';
import { Signal } from '@lumino/signaling';

/**
 * The id of the plugin whose schema holds our settings.
 */
export const SETTINGS_ID = 'jupyter-pause:manager';

/**
 * What a person can choose, with defaults that hold without a setting registry.
 */
export class PauseSettings {
  /**
   * Construct new settings.
   *
   * @param registry - JupyterLab's settings, if the application has them.
   */
  constructor(registry: ISettingRegistry | null) {
    void registry
      ?.load(SETTINGS_ID)
      .then(settings => {
        this._read(settings);
        settings.changed.connect(this._read, this);
      })
      .catch(error => {
        console.error('The settings of jupyter-pause could not be read', error);
      });
  }

  /** Emitted when any setting changes. */
  get changed(): ISignal<this, void> {
    return this._changed;
  }

  /** Whether to ask before every pause, not only when something would be lost. */
  get alwaysConfirm(): boolean {
    return this._alwaysConfirm;
  }

  /** Whether the badge is shown. */
  get showBadge(): boolean {
    return this._showBadge;
  }

  /** Whether the panel opens by itself when something did not come back. */
  get openPanelOnLoss(): boolean {
    return this._openPanelOnLoss;
  }

  /** Whether a notification accompanies every pause and resume. */
  get notify(): boolean {
    return this._notify;
  }

  private _read(settings: ISettingRegistry.ISettings): void {
    const { composite } = settings;
    this._alwaysConfirm = composite.confirm === 'always';
    this._showBadge = composite.showBadge !== false;
    this._openPanelOnLoss = composite.openPanelOnLoss !== false;
    this._notify = composite.notify !== false;
    this._changed.emit();
  }

  private readonly _changed = new Signal<this, void>(this);
  private _alwaysConfirm = false;
  private _showBadge = true;
  private _openPanelOnLoss = true;
  private _notify = true;
}
