/*
 * Copyright (c) jupyter-pause contributors.
 * Distributed under the terms of the Apache License 2.0.
 */

import { ReactWidget } from '@jupyterlab/ui-components';
import { Widget } from '@lumino/widgets';

/**
 * A component as JupyterLab shows it: in a widget that is attached to the page.
 */
export class Rendered {
  private constructor(private readonly _widget: ReactWidget) {}

  /** Show it and wait until it is there. */
  static async of(element: JSX.Element): Promise<Rendered> {
    const widget = ReactWidget.create(element);
    Widget.attach(widget, document.body);
    await widget.renderPromise;
    return new Rendered(widget);
  }

  /** All of its text. */
  get text(): string {
    return this.node.textContent ?? '';
  }

  /** Its node. */
  get node(): HTMLElement {
    return this._widget.node;
  }

  /** The texts of its buttons. */
  get buttons(): string[] {
    return Array.from(
      this.node.querySelectorAll('button'),
      button => button.textContent ?? ''
    );
  }

  /** Press a button by its text. */
  press(label: string): void {
    const button = Array.from(this.node.querySelectorAll('button')).find(
      candidate => candidate.textContent === label
    );
    if (!button) {
      throw new Error(`No button "${label}" among ${this.buttons.join(', ')}`);
    }
    button.click();
  }

  /** Take it away. */
  dispose(): void {
    this._widget.dispose();
  }
}
