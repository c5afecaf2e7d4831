"""The experiments of DEXIN (Fan, Liu, Tang, 2016), section 4: figures 2 to 17.

Figures that show the same measurements are one experiment: DX-2 also holds figure 3, DX-4 figure 5,
DX-13 figure 14 and DX-15 figure 16. The ids of their claims name the figure.
"""
