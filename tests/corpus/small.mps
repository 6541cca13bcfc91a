NAME          SMALL
OBJSENSE
    MAX
ROWS
 N  COST
 L  FEW
 G  SOME
 E  SAME
COLUMNS
    MARKER                 'MARKER'                 'INTORG'
    X         COST         1.0   FEW          1.0
    X         SOME         1.0
    Y         COST         2.0   FEW          1.0
    Y         SAME         1.0
    MARKER                 'MARKER'                 'INTEND'
    Z         SOME        -1.0   SAME        -1.0
RHS
    RHS       FEW          2.0   COST         4.0
RANGES
    RNG       FEW          1.0
BOUNDS
 UP BND       X            1.0
 BV BND       Z
QUADOBJ
    X         Y            3.0
INDICATORS
 IF SOME      Y         1
ENDATA
